"""A side of ``ab`` as it is typed, ``[LABEL=]URL``, a plan file, or ``embedded`` → the raw tree of its plan, a name."""

import copy
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from withstand.errors import UsageError
from withstand.files import is_there, numbered
from withstand.spec import plan_from_file
from withstand.spec.file_kinds import kind_of, refuse_others

Tree = dict[str, Any]
EMBEDDED = "embedded"
_LABEL = re.compile(r"^(?P<label>[^=/\\:]{1,60})=(?P<side>.+)$")
_URL = re.compile(r"[a-z+]+:/", re.IGNORECASE)
_FILES = (".toml", ".yaml", ".yml", ".json")


def labelled(sides: Sequence[str]) -> list[tuple[str, str]]:
    """Each with the name that it is given, or else its host, or its file's name; no two the same."""
    matches = [None if is_there(Path(side)) else _LABEL.match(side) for side in sides]
    texts = [match["side"] if match else side for match, side in zip(matches, sides, strict=True)]
    names = [match["label"].strip() if match else _name(text) for match, text in zip(matches, texts, strict=True)]
    return list(zip(numbered(names), texts, strict=True))


def tree_of(side: str, load: Tree) -> Tree:
    """The plan below the options; ``load`` is the one of sides that bring none.

    Raises:
        UsageError: it is no side.
    """
    if file := file_of(side):
        if load:
            raise UsageError(f"{side} is a plan already; leave out --plan.")
        return _plan_of(file)
    tree = copy.deepcopy(load)
    if side == EMBEDDED:
        tree.setdefault("target", {}).pop("base_url", None)
    elif _URL.match(side):
        tree.setdefault("target", {})["base_url"] = side
    else:
        raise UsageError(f"{side} is neither a URL (http://host:port), nor a plan file, nor `{EMBEDDED}`.")
    return tree


def file_of(side: str) -> Path | None:
    """None = it is no file."""
    return Path(side) if side != EMBEDDED and (is_there(Path(side)) or side.endswith(_FILES)) else None


def _plan_of(path: Path) -> Tree:
    tree = plan_from_file(path)
    if kind_of(tree) == "stack":
        raise UsageError(
            f"{path} is a stack's file, and a side of ab is a URL or a plan. Put what is compared into one stack "
            "with two [plan.targets.NAME], and give that file alone; or bring both up, and give the URLs that "
            "`withstand ps` shows."
        )
    refuse_others(path, tree, "a plan")
    return tree


def _name(text: str) -> str:
    """``127.0.0.1:8000`` of a URL, without a password; the stem of a file."""
    if not _URL.match(text):
        return Path(text).stem or text
    try:
        return urlsplit(text).netloc.rpartition("@")[2] or text
    except ValueError:
        return text
