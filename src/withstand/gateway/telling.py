"""What the gateway's owner is told on stderr, a sentence a line, and whether the terminal that shows it is gone."""

import errno
import os
import sys
import termios

from withstand.gateway.scribe import write_at_once

_STDERR = 2


def tell(sentence: str) -> None:
    """Where nobody is there to read it, or nobody reads on, it is lost: no request waits for that."""
    write_at_once(_STDERR, f"withstand: {sentence}\n".encode("utf-8", "backslashreplace"))


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


def open_standard() -> None:
    """What was closed of stdin, stdout and stderr leads nowhere from here on, before another file gets its number."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  as long as the process
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
