"""GGUF → the same model as Hugging Face lays it out: ``python -m withstand.stack.hf SOURCE FOLDER``.

For engines that read no GGUF: so they serve offline what llama.cpp serves, weight for weight. Nothing is rounded: F32,
F16 and BF16 keep their bits, what is quantized becomes the F32 that gguf makes of it, and only the rows of Q and K go
back to the order that llama.cpp's converter took them out of. Of the architecture ``llama`` and a byte-level BPE
tokenizer alone; numpy and gguf, without torch. Tensors go one by one, so it takes little memory.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from withstand.errors import UsageError, WithstandError
from withstand.stack.hf_tokenizer import check_known, tokenizer_config, tokenizer_of
from withstand.stack.machine import require_disk

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
_BYTES = {"F32": 4, "F16": 2, "BF16": 2}
"""Types that stay as they are: a safetensors file has the same."""
_WORDS = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def to_hf(source: Path, folder: Path) -> None:
    """Write the weights, their description and the tokenizer into ``folder``.

    Raises:
        UsageError: the model, one of its tensors or its tokenizer is of a kind that is not known.
        EngineError: there is no room for it.
    """
    import gguf  # noqa: PLC0415 - the extra `engine`: numpy and gguf are not in the core

    reader = gguf.GGUFReader(source)
    facts = {key: field.contents() for key, field in reader.fields.items()}
    if facts["general.architecture"] != "llama":
        raise UsageError(f"A model of the architecture {facts['general.architecture']} is not known; take a llama.")
    check_known(facts)  # before anything is written
    tensors = {named(tensor.name): tensor for tensor in reader.tensors}
    for tensor in tensors.values():
        _check_readable(tensor)
    needed = sum(int(tensor.n_elements) * _BYTES[kind_of(tensor)] for tensor in tensors.values())
    require_disk(folder, needed, "make room; what is quantized grows to four bytes a weight")
    _write_weights(tensors, facts, folder / "model.safetensors")
    kind = widest(kind_of(tensor) for tensor in tensors.values() if len(tensor.shape) > 1)
    for name, content in {
        "config.json": config_of(facts, kind, tied="lm_head.weight" not in tensors),
        "generation_config.json": _special(facts),
        "tokenizer.json": tokenizer_of(facts),
        "tokenizer_config.json": tokenizer_config(facts),
    }.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False, indent=1), "utf-8")


def named(name: str) -> str:
    """A tensor's name in Hugging Face's layout of Llama.

    Raises:
        UsageError: a plain Llama has none such.
    """
    if name in _NAMES:
        return _NAMES[name]
    match name.split("."):
        case ["blk", layer, part, "weight"] if part in _PARTS:
            return f"model.layers.{layer}.{_PARTS[part]}.weight"
    raise UsageError(f"The tensor {name} is not known; take a GGUF of a plain Llama, without biases or experts.")


def kind_of(tensor: Any) -> str:
    """What a tensor becomes: a key of ``_BYTES``."""
    kind = str(tensor.tensor_type.name)
    return kind if kind in _BYTES else "F32"


def widest(kinds: Iterable[str]) -> str:
    """One that holds all of them."""
    found = set(kinds)
    return found.pop() if len(found) == 1 else "F32"


def config_of(facts: dict[str, Any], kind: str, *, tied: bool) -> dict[str, Any]:
    """``config.json``; both spellings of what was renamed in transformers 5. ``kind`` is that of the matrices."""
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
        "torch_dtype": _WORDS[kind],
        "dtype": _WORDS[kind],
        **_special(facts),
    }


def _special(facts: dict[str, Any]) -> dict[str, Any]:
    """Token ids."""
    wanted = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding"}
    found = {key: facts.get(f"tokenizer.ggml.{name}_token_id") for key, name in wanted.items()}
    return {key: int(value) for key, value in found.items() if value is not None}


def _check_readable(tensor: Any) -> None:
    """Whether gguf reads its type: tried on a block of zeros.

    Raises:
        UsageError: it does not.
    """
    import gguf  # noqa: PLC0415 - as above
    import numpy as np  # noqa: PLC0415 - as above

    _, block_bytes = gguf.GGML_QUANT_SIZES[tensor.tensor_type]
    try:
        gguf.quants.dequantize(np.zeros((1, block_bytes), np.uint8), tensor.tensor_type)
    except NotImplementedError:
        kind = tensor.tensor_type.name
        raise UsageError(f"The tensor {tensor.name} is of type {kind}, which gguf does not read; take F16.") from None


def _numbers(tensor: Any) -> Any:
    """Its numbers (rows, columns) in their own order; BF16 as the 16 bits that it is."""
    import gguf  # noqa: PLC0415 - as above
    import numpy as np  # noqa: PLC0415 - as above

    match tensor.tensor_type.name:
        case "F32" | "F16":
            return tensor.data
        case "BF16":
            return tensor.data.view(np.uint16)
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type)


def _rows(tensor: Any, facts: Mapping[str, Any]) -> Any:
    """Its numbers; llama.cpp keeps the halves of a head's rotated rows in turn, Hugging Face one after the other."""
    heads = facts["llama.attention.head_count"]
    turns = {"attn_q": heads, "attn_k": facts.get("llama.attention.head_count_kv", heads)}
    count, numbers = turns.get(tensor.name.split(".")[-2]), _numbers(tensor)
    if count is None:
        return numbers
    rows, columns = numbers.shape
    return numbers.reshape(count, rows // count // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _write_weights(tensors: Mapping[str, Any], facts: Mapping[str, Any], path: Path) -> None:
    """A safetensors file: the header's length in 8 bytes, the header, all tensors one after the other."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, tensor in tensors.items():
        kind, shape = kind_of(tensor), [int(n) for n in reversed(tensor.shape)]
        end = at + int(tensor.n_elements) * _BYTES[kind]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, end]}
        at = end
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for tensor in tensors.values():
            file.write(_rows(tensor, facts).tobytes())


if __name__ == "__main__":
    try:
        to_hf(Path(sys.argv[1]), Path(sys.argv[2]))
    except WithstandError as e:
        sys.exit(str(e))
