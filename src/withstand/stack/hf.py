"""GGUF → the same model as Hugging Face lays it out: ``python -m withstand.stack.hf SOURCE FOLDER``.

For engines that read no GGUF: so they serve offline what llama.cpp serves, weight for weight. Nothing is rounded: each
tensor keeps its type and its bits, and only the rows of Q and K go back to the order that llama.cpp's converter took
them out of. Of the architecture ``llama`` and a byte-level BPE tokenizer alone; numpy and gguf, without torch.
"""

import json
import sys
from pathlib import Path
from typing import Any

from withstand.errors import UsageError
from withstand.stack.hf_tokenizer import check_known, tokenizer_config, tokenizer_of

_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_DTYPES = {"float32": "F32", "float16": "F16"}


def to_hf(source: Path, folder: Path) -> None:
    """Write the weights, their description and the tokenizer into ``folder``.

    Raises:
        UsageError: the tokenizer is of a kind that is not known.
    """
    import gguf  # noqa: PLC0415 - the extra `engine`: numpy and gguf are not in the core

    reader = gguf.GGUFReader(source)
    facts = {key: field.contents() for key, field in reader.fields.items()}
    if facts["general.architecture"] != "llama":
        sys.exit(f"a model of the architecture {facts['general.architecture']} cannot be laid out anew")
    check_known(facts)  # before anything is written
    weights = {named(t.name): _rows(t, facts) for t in reader.tensors}
    _write_weights(weights, folder / "model.safetensors")
    for name, content in {
        "config.json": config_of(facts, tied="lm_head.weight" not in weights),
        "generation_config.json": _special(facts),
        "tokenizer.json": tokenizer_of(facts),
        "tokenizer_config.json": tokenizer_config(facts),
    }.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False, indent=1), "utf-8")


def named(name: str) -> str:
    """A tensor's name in Hugging Face's layout of Llama."""
    if name in _NAMES:
        return _NAMES[name]
    _, layer, part, _ = name.split(".")
    return f"model.layers.{layer}.{_PARTS[part]}.weight"


def config_of(facts: dict[str, Any], *, tied: bool) -> dict[str, Any]:
    """``config.json``; both spellings of what was renamed in transformers 5."""
    of = {key.removeprefix("llama."): value for key, value in facts.items() if key.startswith("llama.")}
    heads, theta = of["attention.head_count"], of.get("rope.freq_base", 10_000.0)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(facts["tokenizer.ggml.tokens"]),
        "hidden_size": of["embedding_length"],
        "intermediate_size": of["feed_forward_length"],
        "num_hidden_layers": of["block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": of.get("attention.head_count_kv", heads),
        "head_dim": of["embedding_length"] // heads,
        "hidden_act": "silu",
        "max_position_embeddings": of["context_length"],
        "rms_norm_eps": round(of["attention.layer_norm_rms_epsilon"], 12),
        "rope_theta": theta,
        "rope_parameters": {"rope_theta": theta, "rope_type": "default"},
        "tie_word_embeddings": tied,
        "attention_bias": False,
        "mlp_bias": False,
        "torch_dtype": "float16",
        "dtype": "float16",
        **_special(facts),
    }


def _special(facts: dict[str, Any]) -> dict[str, Any]:
    """Token ids."""
    wanted = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding"}
    found = {key: facts.get(f"tokenizer.ggml.{name}_token_id") for key, name in wanted.items()}
    return {key: int(value) for key, value in found.items() if value is not None}


def _rows(tensor: Any, facts: dict[str, Any]) -> Any:
    """Its numbers; llama.cpp keeps the halves of a head's rotated rows in turn, Hugging Face one after the other."""
    heads = facts["llama.attention.head_count"]
    turns = {"attn_q": heads, "attn_k": facts.get("llama.attention.head_count_kv", heads)}
    count = turns.get(tensor.name.split(".")[-2])
    if count is None:
        return tensor.data
    rows, columns = tensor.data.shape
    return tensor.data.reshape(count, rows // count // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _write_weights(weights: dict[str, Any], path: Path) -> None:
    """A safetensors file: the header's length in 8 bytes, the header, all tensors one after the other."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, array in weights.items():
        kind = _DTYPES[str(array.dtype)]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for array in weights.values():
            file.write(array.tobytes())


if __name__ == "__main__":
    try:
        to_hf(Path(sys.argv[1]), Path(sys.argv[2]))
    except UsageError as e:
        sys.exit(str(e))
