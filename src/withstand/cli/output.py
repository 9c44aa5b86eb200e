"""stdout carries the result, stderr what is said on the way. Each is written at once."""

import sys
from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_COLUMNS_MIN = 20


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
    draw(Console(file=text, width=_width(stdout), force_terminal=stdout.is_terminal, no_color=stdout.no_color))
    return text.getvalue()


def columns() -> int:
    """How wide stdout is."""
    from rich.console import Console  # noqa: PLC0415  as above

    return _width(Console(file=sys.stdout))


def _width(console: "Console") -> int:
    """What is narrower than any table can be gets lines that the terminal breaks."""
    return max(console.width, _COLUMNS_MIN)


def _write(stream: TextIO, text: str) -> None:
    _write_as_it_is(stream, text if text.endswith("\n") else f"{text}\n")


def _write_as_it_is(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()
