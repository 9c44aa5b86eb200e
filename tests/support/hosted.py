"""Engines that a gateway starts: their lines in its file, and what became of them."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from withstand.stack.ports import free_port

PATIENCE_S = 30.0
_PROGRAM = Path(__file__).with_name("small_engine.py")


def until(true: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end_s, what
        time.sleep(0.01)


def runs(pid: int) -> bool:
    """Whether it is there, and no mere memory of one that has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Hosted:
    """One engine; ``folder`` is how it is talked to."""

    def __init__(self, folder: Path, *how: str, port: int | None = None) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.name = f"127.0.0.1:{self.port}"
        self.how = how
        folder.mkdir(exist_ok=True)

    @property
    def command(self) -> tuple[str, ...]:
        return (sys.executable, "-S", str(_PROGRAM), str(self.port), str(self.folder), *self.how)

    def toml(self, name: str = "m", more: str = "") -> str:
        """Its table in the gateway's file."""
        command = ", ".join(f"'{word}'" for word in self.command)
        return f'[[models.{name}.engines]]\nurl = "{self.url}"\ncommand = [{command}]\nstop_s = 1\n{more}\n'

    def tell(self, name: str) -> None:
        (self.folder / name).touch()

    def untell(self, name: str) -> None:
        (self.folder / name).unlink()

    @property
    def pids(self) -> list[int]:
        """Of each of its starts."""
        try:
            return [int(line) for line in (self.folder / "starts").read_text().split()]
        except OSError:
            return []

    def until_started(self, times: int = 1) -> int:
        until(lambda: len(self.pids) >= times, f"{self.name} was not started {times} times")
        return self.pids[times - 1]

    def kill(self) -> None:
        """The one that was started last; a thread of its may hold the port for a moment longer than the process."""
        os.kill(self.pids[-1], signal.SIGKILL)
        until(lambda: not runs(self.pids[-1]) and not listens(self.port), "it was killed")

    def until_gone(self) -> None:
        until(lambda: not any(runs(pid) for pid in self.pids), f"{self.name} still runs")
