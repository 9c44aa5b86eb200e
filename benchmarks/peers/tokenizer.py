"""A tokenizer that agrees with the truth servers: each word that they say is one token.

Other clients insist on a Hugging Face tokenizer, for making prompts and, where the server tells no count, for counting
answers. With this one a client that counts the text counts right, so that a wrong count is the client's. Byte-level, so
that any text goes in and comes out again.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from withstand.files import write_atomically
from withstand.testing.truth.behaviours import style_of
from withstand.testing.truth.manners import foreign
from withstand.testing.truth.style import numbered

_ANSWER_TOKENS_MAX: Final = 1000
_SPECIAL: Final = ("<s>", "</s>", "<pad>")
_REPOSITORY: Final = "peers/words"
_REVISION: Final = "0" * 40


def write_tokenizer(home: Path) -> Path:
    """The folder with its files, beside ``hub_cache``."""
    cache = home / "hub" / f"models--{_REPOSITORY.replace('/', '--')}"
    for folder in (home / "tokenizer", cache / "snapshots" / _REVISION):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in _files().items():
            write_atomically(folder / name, json.dumps(content).encode())  # a client may be reading it
    (cache / "refs").mkdir(exist_ok=True)
    write_atomically(cache / "refs" / "main", _REVISION.encode())
    return home / "tokenizer"


def hub_cache(tokenizer: Path) -> tuple[str, str]:
    """(HF_HOME, the name under which the same tokenizer lies there), for a client that takes no folder."""
    return str(tokenizer.parent), _REPOSITORY


def _files() -> dict[str, dict[str, Any]]:
    model = _model()
    special = [
        {"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        | {"special": True}
        for i, t in enumerate(_SPECIAL)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    words = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithNext", "invert": False}
    tokenizer = {
        "version": "1.0",
        "added_tokens": special,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [words, byte_level]},
        "decoder": byte_level,
        "model": model,
    }
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "model_max_length": 131072,
        "chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}",
    }
    kind = {"model_type": "gpt2", "vocab_size": len(model["vocab"]), "bos_token_id": 0, "eos_token_id": 1}
    return {"tokenizer.json": tokenizer, "tokenizer_config.json": config, "config.json": kind}


def _model() -> dict[str, Any]:
    """Bytes, and the merges that make words of them."""
    merges = list(dict.fromkeys(_merges()))
    tokens = dict.fromkeys([*_SPECIAL, *_letters(), *(a + b for a, b in merges)])
    return {
        "type": "BPE",
        "vocab": {token: i for i, token in enumerate(tokens)},
        "merges": [f"{a} {b}" for a, b in merges],
    }


def _merges() -> Iterator[tuple[str, str]]:
    """Each word grows from its left end, letter by letter; those that begin with a space first, or they break apart."""
    letters = _letters()
    for word in sorted(_words(), key=lambda word: not word.startswith(" ")):
        spelled = "".join(letters[byte] for byte in word.encode())
        for end in range(1, len(spelled)):
            yield spelled[:end], spelled[end]


def _words() -> Iterator[str]:
    """Of withstand's truth server as ever, in foreign letters and as an error; `` tok`` of the one in Go."""
    for index in range(_ANSWER_TOKENS_MAX):
        yield numbered(index)
        yield foreign(index)
    yield from style_of("error_text_as_content").sentence or ()
    yield from (" tok", "tok")


def _letters() -> list[str]:
    """The 256 letters that stand for bytes, as GPT-2 has it: printable bytes are themselves."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (chr(0x100 + i) for i in range(256 - len(printable)))
    return [chr(byte) if byte in printable else next(others) for byte in range(256)]
