"""Verbs that are programs of their own: the command line may not import what it measures, or what it is tested with.

They take over the process before anything else of the command line is loaded, for a gateway should be there at once.
"""

import os
import signal
import sys

from withstand.cli.words import is_utf8
from withstand.programs import PROGRAMS, command_of


def hand_over(argv: list[str]) -> None:
    """Become the program that the first word names; where it names none, or a word is not UTF-8, nothing happens."""
    name, *options = (argv[1:] if argv[:1] == ["--"] else argv) or [""]
    if name not in PROGRAMS or not all(map(is_utf8, options)):
        return
    too_early = {signal.SIGINT, signal.SIGHUP} if name == "gateway" else {signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, too_early)  # until they can be heard
    os.execv(sys.executable, [*command_of(name, sys.executable), *options])  # noqa: S606  our own modules
