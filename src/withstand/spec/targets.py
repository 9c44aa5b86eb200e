"""``[targets.NAME]``: several targets, each laid over ``[target]``. Pure, on the raw tree, as lists are expanded."""

from typing import Any

import msgspec

from withstand.errors import SpecError
from withstand.hints import hinted
from withstand.spec.target import Target

Tree = dict[str, Any]


def laid_over(raw: Tree) -> Tree:
    """The plan with its targets whole; what has another shape is left to the types.

    Raises:
        SpecError: a target's field is wrong; the text has its path.
    """
    targets, base = raw.get("targets"), raw.get("target", {})
    if not isinstance(targets, dict) or not isinstance(base, dict):
        return raw
    tables = {name: laid_over_tree(base, table) for name, table in targets.items()}
    for name, table in tables.items():
        _check(name, table)
    return raw | {"targets": tables}


def laid_over_tree(below: Any, above: Any) -> Any:
    """Tables within are laid over each other too: headers, timeouts."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return below | {key: laid_over_tree(below.get(key), value) for key, value in above.items()}


def _check(name: str, table: Any) -> None:
    """By itself: of what stands in a table of names, the types would not tell the name."""
    try:
        msgspec.convert(table, Target)
    except msgspec.ValidationError as e:
        at = f"$.targets.{name}"
        told = hinted(str(e), Target)
        told = told.replace("`$", f"`{at}") if "`$" in told else f"{told} - at `{at}`"
        raise SpecError(f"The plan is wrong: {told}. `withstand schema plan` prints what is allowed.") from None
