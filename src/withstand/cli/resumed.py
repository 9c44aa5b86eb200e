"""``--resume DIR``: what may stand beside it."""

import click
from click.core import ParameterSource

from withstand.errors import UsageError

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
