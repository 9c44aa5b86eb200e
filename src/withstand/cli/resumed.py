"""``--resume DIR``: what may stand beside it."""

from pathlib import Path

import click
from click.core import ParameterSource

from withstand.errors import UsageError
from withstand.runs import RunFolder, TargetsFolder, TurnsFolder

_BESIDE = {"folder", "quiet", "plain", "as_json"}


def refuse_others(context: click.Context, argument: str, *beside: str) -> None:
    """What is gone on with keeps what it began with, but for what may stand ``beside``.

    ``argument`` is what the verb's own are called.

    Raises:
        UsageError: something else was typed.
    """
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in {*_BESIDE, *beside} and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            what = parameter.opts[0] if parameter.param_type_name == "option" else argument
            raise UsageError(f"--resume goes on with the plan that the run began with; leave out {what}.")


def refuse_anothers(folder: Path, verb: str) -> None:
    """What another verb has begun is gone on with by that one.

    Raises:
        UsageError: ``verb`` cannot; the text names the one that can.
    """
    is_turns = TurnsFolder.is_one(folder)
    if verb == "ab":
        right = None if is_turns or not (RunFolder.is_one(folder) or TargetsFolder.is_one(folder)) else "run"
    else:
        right = "ab" if is_turns else None
    if right:
        raise UsageError(f"`withstand {right} --resume {folder}` goes on with {folder}; {verb} has not begun it.")
