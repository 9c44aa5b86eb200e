"""From ``argv`` to an exit code: whatever is raised below becomes one sentence on stderr, never a traceback."""

import signal
import sys
from collections.abc import Sequence

import click

from withstand.cli import INTERRUPTED, crash
from withstand.cli.output import say
from withstand.cli.streams import check_written, forget_odd_sizes, usable
from withstand.cli.verbs import withstand
from withstand.cli.words import is_utf8
from withstand.errors import UsageError, WithstandError

_OUR_FAULT = 3


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    sys.stdout, sys.stderr = usable(sys.stdout), usable(sys.stderr)
    forget_odd_sizes()
    code = exit_code_of(list(sys.argv[1:] if argv is None else argv))
    if code == INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is cleared away: once more shows no traceback of the end
    sys.exit(code)


def exit_code_of(argv: list[str]) -> int:
    """Call the verb; 0 good, 1 a limit was missed, 2 usage, 3 not measured."""
    try:
        _refuse_odd_bytes(argv)
        code = _called(argv)
        check_written()
    except click.ClickException as e:
        from withstand.usage import sentence  # noqa: PLC0415  help need not wait for it

        say(f"withstand: {sentence(e, 'withstand')}")
        return e.exit_code
    except WithstandError as e:
        say(f"withstand: {e}")
        return e.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as e:  # noqa: BLE001  the last net: a fault of our own is told in one sentence too
        say(f"withstand: {crash.sentence(e)}")
        return _OUR_FAULT
    return code


def _called(argv: list[str]) -> int:
    try:
        with withstand.make_context("withstand", argv or ["--help"], obj=tuple(argv)) as context:
            return withstand.invoke(context) or 0
    except click.exceptions.Exit as e:
        return e.exit_code


def _refuse_odd_bytes(argv: list[str]) -> None:
    for word in argv:
        if not is_utf8(word):
            raise UsageError(f"{word!r} on the command line is not UTF-8.")
