"""``--plan NAME|FILE``: a plan that comes along, or a file's; alone, or as the load of a stack."""

from pathlib import Path
from typing import Any

from withstand.app.plans import NAMES, ready_made
from withstand.errors import UsageError
from withstand.files import is_there
from withstand.spec import plan_from_file
from withstand.spec.file_kinds import refuse_others
from withstand.stack.aims import asked_as, elsewhere

Tree = dict[str, Any]


def named_plan(named: str) -> Tree:
    """As it is written.

    Raises:
        UsageError: there is no such plan, or the file is another kind's.
    """
    path = Path(named)
    if named in NAMES or not (path.suffix or is_there(path)):
        return ready_made(named)
    tree = plan_from_file(path)
    refuse_others(path, tree, "a plan")
    return tree


def load_of(named: str, own: Tree) -> Tree:
    """The same, asked of what a stack's ``own`` plan asks, or of what it names itself there.

    Raises:
        UsageError: as above, or nothing of it would be asked of the stack.
    """
    load = named_plan(named)
    if field := elsewhere(load):
        raise UsageError(
            f"--plan {named}: {field} leads elsewhere than to the stack. Leave it out, name a service of the stack "
            "instead, or measure that address without the stack's file."
        )
    return asked_as(load, own)
