"""One worker: a process that takes its stripe of a stage's requests and sends them when they are due.

``python -m withstand.load.worker`` reads a Job from its standard input, then commands; it writes reports to its
standard output and records to its file. When its standard input ends, whoever started it is gone: it stops.
"""

import os
import signal

import msgspec

from withstand import clock
from withstand.errors import StorageError, WithstandError
from withstand.load.connection import Route
from withstand.load.job import Command, Job, Report
from withstand.load.lines import Lines
from withstand.load.poller import READ, Poller
from withstand.load.selfcheck import SelfCheck
from withstand.load.sender import Sender
from withstand.load.timer import Alarm
from withstand.load.tls import make_context
from withstand.load.transport import Transport

_STDIN, _STDOUT = 0, 1
_SWEEP_NS = 100_000_000
_REPORT_NS = 200_000_000
_FEED_S = 0.005
_command = msgspec.json.Decoder(Command).decode


class Worker:
    """The loop: poll, hand over, dispatch, read ahead; a sweep ten times a second."""

    def __init__(self, job: Job, commands: "Commands") -> None:
        self._poller = Poller()
        self._check = SelfCheck(job.worker)
        context = make_context(job.cacert, insecure=job.insecure) if job.address.tls else None
        route = Route(address=job.address, located=job.located, context=context, timeouts=job.timeouts)
        self._transport = Transport(route, self._poller, self._check)
        self._sender = Sender(job, self._transport)
        self._commands = commands
        self._alarm = Alarm.open()
        self._poller.register(_STDIN, READ)
        if self._alarm:
            self._poller.register(self._alarm.fd, READ)
        self._sweep_next_ns = self._report_next_ns = 0

    def wait_for_start(self) -> bool:
        """Read ahead, say that we are ready, wait; False = it was called off."""
        self._sender.feed_up()
        say(Report(ready=True))
        while True:
            command = self._commands.wait()
            if command.stop or command.drain:
                return False
            if command.start_ns is not None:
                self._sender.start_ns = command.start_ns
                return True

    def run(self) -> Report:
        """The whole stage."""
        self._check.begin()
        now_ns = clock.now_ns()
        if self._commands.waiting:
            self._obey()
        while not self._sender.over(now_ns):
            more = now_ns >= self._sender.start_ns and self._sender.dispatch(now_ns)
            ready = self._poller.wait(0.0 if more else self._pause_s(now_ns))
            began_ns = clock.now_ns()
            self._handle(ready)
            now_ns = clock.now_ns()
            self._due_work(now_ns)
            self._check.stall_ns_max = max(self._check.stall_ns_max, clock.now_ns() - began_ns)
        self._sender.close(now_ns)
        sent, done = self._sender.counts
        health = self._check.end(sent=sent, finished=done)
        return msgspec.structs.replace(self._sender.report(), health=health)

    def _pause_s(self, now_ns: int) -> float:
        """How long nothing needs us; the alarm, where there is one, is set to the next planned send."""
        wake_ns = self._sender.wake_ns()
        if wake_ns is not None:
            wake_ns = max(wake_ns, self._sender.start_ns)
        timeout_s = _FEED_S if self._sender.hungry or self._transport.wants_to_dial else _SWEEP_NS / 1e9
        if wake_ns is None:
            return timeout_s
        if self._alarm:
            self._alarm.set(wake_ns)
            return timeout_s
        return min(timeout_s, max(0.0, (wake_ns - now_ns) / 1e9))

    def _handle(self, ready: list[tuple[int, int]]) -> None:
        self._transport.begin_turn()
        for descriptor, events in ready:
            if self._alarm and descriptor == self._alarm.fd:
                self._alarm.clear()
            elif descriptor == _STDIN:
                self._obey()
            else:
                self._transport.on_event(descriptor, events)

    def _obey(self) -> None:
        for command in self._commands.read():
            now_ns = clock.now_ns()
            if command.stop:
                self._sender.stop(now_ns)
            elif command.drain:
                self._sender.drain(now_ns)
        if self._commands.ended:
            self._poller.unregister(_STDIN)

    def _due_work(self, now_ns: int) -> None:
        if self._sender.hungry:
            self._sender.feed()
        if self._transport.wants_to_dial:
            self._transport.dial_waiting()
        if now_ns >= self._sweep_next_ns:
            self._sweep_next_ns = now_ns + _SWEEP_NS
            self._transport.sweep(now_ns)
        if now_ns >= self._report_next_ns:
            self._report_next_ns = now_ns + _REPORT_NS
            say(self._sender.report())


class Commands:
    """What we are told. The end of standard input is a ``stop``: nobody is there any more."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    @property
    def ended(self) -> bool:
        """Whether nothing more can come."""
        return self._lines.ended

    @property
    def waiting(self) -> bool:
        """Whether one came together with the one before it."""
        return self._lines.waiting

    def wait(self) -> Command:
        """The next command, waiting for it."""
        line = self._lines.wait()
        return _command(line) if line else Command(stop=True)

    def read(self) -> list[Command]:
        """The commands that have come; call it when standard input is readable."""
        commands = [_command(line) for line in self._lines.read()]
        return [*commands, Command(stop=True)] if self.ended else commands


def say(report: Report) -> None:
    """One report to whoever started us; if nobody listens, the end of standard input will say so."""
    try:
        os.write(_STDOUT, msgspec.json.encode(report) + b"\n")
    except BrokenPipeError:
        return


def main() -> None:
    """Run one job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lines = Lines(_STDIN)
    line = lines.wait()
    if not line:
        return
    try:
        worker = Worker(msgspec.json.decode(line, type=Job), Commands(lines))
        if worker.wait_for_start():
            say(worker.run())
    except WithstandError as e:
        say(Report(error=str(e), storage=isinstance(e, StorageError)))
        raise SystemExit(e.exit_code) from None


if __name__ == "__main__":
    main()
