"""The worker processes of one stage: started, listened to, told to drain or stop. No bus: pipes and files.

A worker that dies is noticed; what it had finished is on file.
"""

import selectors
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from withstand import clock
from withstand.errors import MeasureError
from withstand.load.job import Command, Job, Report
from withstand.record import Health

_END_S = 5.0
_decode = msgspec.json.Decoder(Report).decode


class Member:
    """One worker process and the last that it said."""

    def __init__(self, job: Job, log: Path) -> None:
        self.job = job
        self.report = Report()
        self.ready = False
        self.ended = False
        self.ended_ns = 0
        self._tail = b""
        self._log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "withstand.load.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                bufsize=0,
            )
        self.send(msgspec.json.encode(job))

    def tell(self, command: Command) -> None:
        """Give a command."""
        self.send(msgspec.json.encode(command))

    def send(self, line: bytes) -> None:
        """One line; a dead worker is noticed elsewhere."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + b"\n")
        except BrokenPipeError:
            return

    def listen(self) -> None:
        """Read what it has said."""
        assert self.process.stdout is not None
        data = self.process.stdout.read(65536)
        if not data:
            self.ended = True
            self.ended_ns = clock.now_ns()
            self.process.wait()
            return
        *lines, self._tail = (self._tail + data).split(b"\n")
        for line in lines:
            report = _decode(line)
            if report.ready:
                self.ready = True
            else:
                self.report = report

    @property
    def lost(self) -> bool:
        """Whether it died without a last word."""
        return self.ended and self.report.health is None and self.report.error is None

    def health(self) -> Health:
        """Its own account, or what can be said of a dead one."""
        if self.report.health:
            return self.report.health
        return Health(
            worker=self.job.worker, sent=self.report.sent, finished=self.report.done, wall_ns=0, cpu_ns=0, lost=True
        )

    def why_lost(self) -> str:
        """The end of what it wrote on its standard error."""
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return f"exit status {self.process.returncode}" + (f", {lines[-1]}" if lines else "")


class Fleet:
    """A context: at its end no worker is left."""

    def __init__(self, jobs: Sequence[Job], log: Path) -> None:
        self._selector = selectors.DefaultSelector()
        self.members = [Member(job, log) for job in jobs]
        for member in self.members:
            assert member.process.stdout is not None
            self._selector.register(member.process.stdout, selectors.EVENT_READ, member)

    def listen(self, timeout_s: float) -> None:
        """Wait for something to be said, and take it in."""
        for key, _ in self._selector.select(timeout_s):
            member: Member = key.data
            member.listen()
            if member.ended:
                self._selector.unregister(key.fileobj)

    def wait_ready(self, timeout_s: float) -> None:
        """Until every worker is ready.

        Raises:
            MeasureError: one said why not, or died.
        """
        until_ns = clock.now_ns() + int(timeout_s * 1e9)
        while not all(m.ready for m in self.members):
            self.listen(0.1)
            for member in self.members:
                if member.ended:
                    raise MeasureError(member.report.error or f"A worker did not start: {member.why_lost()}.")
            if clock.now_ns() > until_ns:
                raise MeasureError(f"The workers were not ready within {timeout_s:g} s; is the machine overloaded?")

    def tell(self, command: Command) -> None:
        """Give a command to all that live."""
        for member in self.members:
            if not member.ended:
                member.tell(command)

    def kill(self) -> None:
        """End those that do not obey."""
        for member in self.members:
            if not member.ended:
                member.process.kill()

    @property
    def ended(self) -> bool:
        """Whether all have ended."""
        return all(m.ended for m in self.members)

    def error(self) -> str | None:
        """What the first of them complained of."""
        return next((m.report.error for m in self.members if m.report.error), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        for member in self.members:
            assert member.process.stdin is not None
            assert member.process.stdout is not None
            member.process.stdin.close()
        for member in self.members:
            _end(member.process)
            assert member.process.stdout is not None
            member.process.stdout.close()
        self._selector.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """It stops by itself when its standard input ends; if not, it is killed."""
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
