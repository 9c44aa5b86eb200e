"""What the gateway's owner is told on stderr, a sentence a line, and whether the terminal that shows it is gone."""

import contextlib
import errno
import termios

import click

_STDERR = 2


def tell(sentence: str) -> None:
    """Nobody may be there to read it; the gateway goes on."""
    with contextlib.suppress(OSError):
        click.echo(f"withstand: {sentence}", err=True)


def tell_of_waiting(requests: int, most_s: float) -> None:
    """At the end, where it does not come at once."""
    many = "1 request is" if requests == 1 else f"{requests} requests are"
    tell(f"{many} waited for, at most {most_s:g} s; a second signal ends the gateway at once.")


def is_hung_up() -> bool:
    """Whether stderr is a terminal that was closed; what is no terminal is not."""
    try:
        termios.tcgetattr(_STDERR)
    except termios.error as e:
        return bool(e.args[0] == errno.EIO)
    return False
