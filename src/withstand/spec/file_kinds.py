"""Whose a file is, by the key that only its kind has: a plan has none of these. A sentence for whoever took another."""

from pathlib import Path
from typing import Literal

from withstand.errors import SpecError

Kind = Literal["stack", "gateway", "agent"]
_TAKEN_BY: dict[Kind, str] = {"stack": "withstand up", "gateway": "withstand gateway", "agent": "withstand agent"}


def kind_of(tree: object) -> Kind | None:
    """None = a plan, or nothing that is known."""
    if not isinstance(tree, dict):
        return None
    if "engines" in tree:
        return "stack"
    if isinstance(tree.get("models"), dict):
        return "gateway"
    return "agent" if isinstance(tree.get("model"), dict) else None


def refuse_others(path: Path, tree: object, wanted: str, *good: Kind) -> None:
    """Of what a verb was given for ``wanted``; ``good`` are the kinds that it takes besides plans.

    Raises:
        SpecError: it is another one's.
    """
    kind = kind_of(tree)
    if kind is not None and kind not in good:
        article = "an" if kind == "agent" else "a"
        raise SpecError(f"{path} is {article} {kind}'s file, not {wanted}: {_TAKEN_BY[kind]} {path}.")
