"""stdout carries the result, stderr what is said on the way. Neither may stop a measurement.

When the reader of a pipe has left (``withstand run | head``), the rest goes nowhere, quietly: the run folder has it.
"""

import os
import sys
from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


def write_result(text: str) -> None:
    """Print a result, with a newline at its end."""
    _write(sys.stdout, text)


def say(text: str) -> None:
    """Print a sentence that is no result."""
    _write(sys.stderr, text)


def draw(text: str) -> None:
    """Print on stderr as it is, without a newline at its end."""
    _write_as_it_is(sys.stderr, text)


def rendered(draw: Callable[["Console"], None]) -> str:
    """What ``draw`` prints on a rich console as wide and as colourful as stdout."""
    from rich.console import Console  # noqa: PLC0415  --help and --json do not need it

    stdout = Console(file=sys.stdout)
    text = StringIO()
    draw(Console(file=text, width=stdout.width, force_terminal=stdout.is_terminal, no_color=stdout.no_color))
    return text.getvalue()


def columns() -> int:
    """How wide stdout is."""
    from rich.console import Console  # noqa: PLC0415  as above

    return Console(file=sys.stdout).width


def _write(stream: TextIO, text: str) -> None:
    _write_as_it_is(stream, text if text.endswith("\n") else f"{text}\n")


def _write_as_it_is(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except OSError:  # the reader has left, or the disk behind a redirection is full
        _silence(stream)


def _silence(stream: TextIO) -> None:
    """Point the descriptor elsewhere: Python flushes once more when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
