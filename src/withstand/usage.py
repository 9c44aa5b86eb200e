"""What click says of a mistake on a command line, as one sentence of ours, and programs that say it so."""

import re
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from withstand.errors import WithstandError
from withstand.hints import meant

_INTERRUPTED = 130
_NO_NUMBER = re.compile(r"is not a valid (?P<kind>integer|float)( range)?$")
_NO_VERB = re.compile(r"No such command '(?P<name>[^']*)'")
_OUTSIDE = re.compile(r"is not in the range (?P<least>[^x<>=]+)?(?P<from>[<=]*)x(?P<to>[<>=]*)(?P<end>\S+)?$")
_KINDS = {"integer": "is no whole number; give one, such as 8", "float": "is no number; give one, such as 500"}
_ENDS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}


def run_program(program: click.Command, arguments: Sequence[str], name: str) -> NoReturn:
    """Run it and leave the process with its exit code; whatever is wrong is one sentence on stderr.

    A Ctrl-C that came before was held back until it can be heard (``cli.programs``).
    """
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        code = program.main(list(arguments), prog_name=name, standalone_mode=False)
    except (click.ClickException, WithstandError) as e:
        click.echo(f"withstand: {sentence(e, name) if isinstance(e, click.ClickException) else e}", err=True)
        sys.exit(e.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(_INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def sentence(e: click.ClickException, program: str) -> str:
    """What is wrong, what was meant, and who tells more."""
    context: Any = getattr(e, "ctx", None)
    return f"{_what(e)}. `{context.command_path if context else program} --help` lists what there is."


def _what(e: click.ClickException) -> str:
    if isinstance(e, click.NoSuchOption):
        return f"No such option {e.option_name}{meant(e.option_name, _options(e))}"
    message = " ".join(e.format_message().split()).rstrip(".")
    context = getattr(e, "ctx", None)
    if context and isinstance(context.command, click.Group) and (found := _NO_VERB.match(message)):
        return f"No such verb {found['name']!r}{meant(found['name'], context.command.list_commands(context))}"
    if message == "Missing command":
        return "Say which verb"
    return _OUTSIDE.sub(_limits, _NO_NUMBER.sub(lambda found: _KINDS[found["kind"]], message))


def _options(e: click.NoSuchOption) -> Sequence[str]:
    """Those that are close, or all where the program has few."""
    if e.possibilities or e.ctx is None:
        return e.possibilities or ()
    return [name for parameter in e.ctx.command.params for name in parameter.opts if name.startswith("--")]


def _limits(found: re.Match[str]) -> str:
    """``1<=x<=64`` in words."""
    low = f"{_ENDS['>' + found['from'][1:]]} {found['least']}" if found["least"] else ""
    high = f"{_ENDS[found['to']]} {found['end']}" if found["end"] else ""
    return f"must be {' and '.join(filter(None, (low, high)))}"
