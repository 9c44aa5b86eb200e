"""A process of ours that speaks in lines: some go in, some come out, and what else it says goes into a log.

It knows how to start one, hear it and end it; not what is said. A child stops by itself when its standard input ends.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from withstand.load.lines import Lines

_PATIENCE_S = 5.0


class Child:
    """``python -m module arguments`` on huge pages.

    In a session of its own, so that a Ctrl-C at the terminal is not meant for it.
    """

    def __init__(self, module: str, log: Path, arguments: Sequence[str] = ()) -> None:
        self._log = log.open("a+b")  # kept open: the file may lose its name before we need its last line
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", "withstand.huge_pages", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
            bufsize=0,
        )
        self._lines = Lines(self.fileno())

    def fileno(self) -> int:
        """What becomes readable when it has spoken, or ended."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it has closed its mouth: it is about to go, or gone."""
        return self._lines.ended

    @property
    def failed(self) -> bool:
        """Whether it has ended, and not well."""
        return bool(self._process.poll())

    def send(self, line: bytes) -> None:
        """One line; that a child is dead is noticed where it is heard."""
        assert self._process.stdin is not None
        data = memoryview(line + b"\n")
        try:
            while data:
                data = data[self._process.stdin.write(data) or 0 :]
        except BrokenPipeError:
            return

    def hear(self) -> list[bytes]:
        """The lines that have come; call it when ``fileno`` is readable."""
        lines = self._lines.read()
        if self.ended:
            self._process.wait()
        return lines

    def why(self) -> str:
        """How it ended: its status, and the end of what it wrote on its standard error."""
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return f"exit status {self._process.returncode}" + (f", {lines[-1]}" if lines else "")

    def kill(self) -> None:
        """End it now."""
        self._process.kill()

    def dismiss(self) -> None:
        """Let it know that nobody listens any more."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def end(self, patience_s: float = _PATIENCE_S) -> None:
        """Dismiss it and wait; who does not go is killed."""
        self.dismiss()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()
