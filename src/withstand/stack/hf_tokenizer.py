"""A GGUF file's byte-level BPE tokenizer as Hugging Face's ``tokenizers`` writes it down."""

from typing import Any

from withstand.errors import UsageError

_KNOWN = ("gpt2", "smollm")
"""The model and the pre-tokenizer that ``tokenizer_of`` writes down."""
_CONTROL = 3
"""The type of tokens that no text becomes."""


def check_known(facts: dict[str, Any]) -> None:
    """Another pre-tokenizer would cut texts in other places, and nobody would notice.

    Raises:
        UsageError: it is not the one that is known here.
    """
    found = tuple(str(facts.get(f"tokenizer.ggml.{key}")) for key in ("model", "pre"))
    if found != _KNOWN:
        raise UsageError(
            f"The tokenizer {found[0]} with pre-tokenizer {found[1]} is not known; take a GGUF with "
            f"{' and '.join(_KNOWN)}."
        )


def tokenizer_of(facts: dict[str, Any]) -> dict[str, Any]:
    """``tokenizer.json``: digits one by one (the pre-tokenizer ``smollm``), then GPT-2's bytes and merges.

    Raises:
        UsageError: see ``check_known``.
    """
    check_known(facts)
    tokens = facts["tokenizer.ggml.tokens"]
    bytes_alone = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            _added(number, token)
            for number, (token, kind) in enumerate(zip(tokens, facts["tokenizer.ggml.token_type"], strict=True))
            if kind == _CONTROL
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, bytes_alone]},
        "post_processor": None,
        "decoder": {**bytes_alone, "add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in facts["tokenizer.ggml.merges"]],
        },
    }


def tokenizer_config(facts: dict[str, Any]) -> dict[str, Any]:
    """``tokenizer_config.json``, with the chat template."""
    tokens = facts["tokenizer.ggml.tokens"]
    wanted = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    numbers = {key: facts.get(f"tokenizer.ggml.{name}_token_id") for key, name in wanted.items()}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{key: tokens[number] for key, number in numbers.items() if number is not None},
        "model_max_length": facts["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "chat_template": facts.get("tokenizer.chat_template"),
    }


def _added(number: int, token: str) -> dict[str, Any]:
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": token, **plain, "special": True}
