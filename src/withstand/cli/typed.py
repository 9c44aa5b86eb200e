"""The command line as it may be written into a run folder: without what opens a door."""

import re
from collections.abc import Iterator, Sequence

from withstand.spec import Plan, Target, redacted

_HIDDEN = "***"
_SECRET_PATH = re.compile(r"(target|targets\.[^.]+)(\.headers.*|\.extra_body.*|\.serve.*)?|targets")
_URL = re.compile(r"(?<![a-z+])[a-z+]++://.*", re.IGNORECASE)
_URL_PATH = re.compile(r"(target|targets\.[^.]+)\.base_url")


def without_secrets(argv: Sequence[str]) -> list[str]:
    """The same words; the values of headers and of body fields are hidden, and so is a password within a URL."""
    return list(_words(iter(argv)))


def _words(argv: Iterator[str]) -> Iterator[str]:
    for word in argv:
        option, equals, value = word.partition("=")
        if option not in {"--header", "--set", "--base-url"}:
            yield _without_user(word)
        elif equals:
            yield f"{option}={_hidden(option, value)}"
        else:
            yield option
            yield from (_hidden(option, value) for value in [next(argv, None)] if value is not None)


def _hidden(option: str, value: str) -> str:
    if option == "--base-url":
        return _without_password(value)
    if option == "--header":
        return f"{_until(value, '=:')}={_HIDDEN}"
    path, _, assigned = value.partition("=")
    if _SECRET_PATH.fullmatch(path):
        return f"{path}={_HIDDEN}"
    return f"{path}={_without_password(assigned)}" if _URL_PATH.fullmatch(path) else value


def _until(text: str, ends: str) -> str:
    return text[: min((text.index(end) for end in ends if end in text), default=0)].strip()


def _without_user(word: str) -> str:
    """A side of ``ab`` is a URL, with a label or without."""
    found = _URL.search(word)
    return word[: found.start()] + _without_password(found[0]) if found else word


def _without_password(url: str) -> str:
    try:
        return redacted(Plan(target=Target(base_url=url))).target.base_url or url
    except ValueError:
        return _HIDDEN  # no URL at all, so nothing can be told of what is in it
