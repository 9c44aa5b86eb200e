"""Why an engine did not start, in its own words and without secrets: pure, but for its log."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from withstand.gateway.hosting.config import Hosted
from withstand.processes.words import ending, said_reason, tail

_TELLS = r"(?im)^.*\b(?:error|exception|cannot|can't|couldn't|failed|fatal|no such|not found|out of memory)\b.*$"
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)
_LOOKS_SECRET = re.compile(
    r"\b(?:sk|hf|pk|ghp|xox[a-z])[-_][\w-]{6,}|(?i:bearer)\s+\S+|(?<=://)[^\s/@]+(?=@)|\b(?=\w*\d)[A-Za-z0-9+_]{40,}={0,2}"
)
_HIDDEN = "***"
_SHORT_CHARS = 4
"""A value of fewer is found in any text, and is no secret."""


def cause(log_file: Path, start: int, code: int | None, hidden: Iterable[str]) -> str:
    """How it ended and the line of its log that says why, for those who asked for it.

    ``start`` is where its part of the log begins, ``code`` None where it has not ended.
    """
    said = said_reason(tail(log_file, start), _TELLS).rstrip(".")
    how = ending(code)
    return f"{how}: {without_secrets(said, hidden)}" if said else f"{how}, and said nothing"


def without_secrets(text: str, hidden: Iterable[str]) -> str:
    """The text with neither those values nor what looks like one in it."""
    for value in sorted(hidden, key=len, reverse=True):
        text = text.replace(value, _HIDDEN)
    return _LOOKS_SECRET.sub(_HIDDEN, text)


def secrets_of(hosted: Hosted, environ: Mapping[str, str]) -> set[str]:
    """Values that nobody is to read: of variables and options whose name says so."""
    told = {**environ, **hosted.env}
    found = {value for name, value in told.items() if _SECRET_NAME.search(name)}
    found |= set(_in_options(hosted.command or ()))
    return {value for value in found if len(value) >= _SHORT_CHARS}


def _in_options(command: Sequence[str]) -> Iterable[str]:
    for option, following in zip(command, (*command[1:], ""), strict=True):
        name, equals, value = option.partition("=")
        if name.startswith("-") and _SECRET_NAME.search(name):
            yield value if equals else following
