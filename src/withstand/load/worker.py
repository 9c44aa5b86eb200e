"""One worker: a process that takes its stripe of a stage's requests and sends them when they are due.

``python -m withstand.load.worker`` reads a Job from its standard input, then commands; it writes reports to its
standard output and records to its file. When its standard input ends, whoever started it is gone: it stops.
"""

import signal

import msgspec

from withstand import clock
from withstand.errors import StorageError, WithstandError
from withstand.load.job import Command, Job, Report
from withstand.load.lines import Lines, say_line
from withstand.load.loop import NAP_NS, SHORT_NAP_NS, TURN_NAP_NS, Loop
from withstand.load.owner import Route
from withstand.load.poller import READ
from withstand.load.selfcheck import SelfCheck
from withstand.load.sender import Sender
from withstand.load.stamps import kernel_may_stamp
from withstand.load.timer import Alarm
from withstand.load.tls import make_context
from withstand.load.transport import Transport

_STDIN, _STDOUT = 0, 1
_SWEEP_NS = 100_000_000
_REPORT_NS = 200_000_000
_FEED_NS = 5_000_000
_SHARED_READS_MAX = 10
"""In a sweep: of the thousand tokens and more where naps are, one in a hundred."""
_command = msgspec.json.Decoder(Command).decode


class Worker:
    """The loop: wait, hand over, dispatch, read ahead; a sweep ten times a second."""

    def __init__(self, job: Job, commands: "Commands") -> None:
        self._job = job
        self._check = SelfCheck(job.worker)
        context = make_context(job.cacert, insecure=job.insecure) if job.address.tls else None
        route = Route(address=job.address, located=job.located, context=context, timeouts=job.timeouts)
        self._loop = Loop(_nap_ns(job))
        self._transport = Transport(route, self._loop, self._check)
        self._sender = Sender(job, self._transport)
        self._commands = commands
        self._alarm = Alarm.open()
        if self._alarm:
            self._loop.add(self._alarm.fd, READ, self._alarm.clear)
        self._sweep_next_ns = self._report_next_ns = 0
        self._shared_reads = 0

    def wait_for_start(self) -> bool:
        """Read ahead, say that we are ready, wait, read on until the start; False = it was called off."""
        self._sender.feed_up(clock.now_ns() + _SWEEP_NS)
        self._watch_naps()
        self._check.count_own_descriptors()
        self._preconnect()
        say(Report(ready=True))
        while True:
            command = self._commands.wait()
            if command.stop or command.drain:
                return False
            if command.start_ns is not None:
                self._sender.start_ns = command.start_ns
                self._sender.feed_up(command.start_ns - _FEED_NS)
                return True

    def _preconnect(self) -> None:
        """Open the connections that were asked for; those that cannot be had are dialled when they are needed."""
        self._transport.preconnect(self._job.preconnect)
        until_ns = clock.now_ns() + int(self._job.timeouts.connect_s * 1e9)
        while self._transport.opening and (now_ns := clock.now_ns()) < until_ns:
            self._loop.turn(_SWEEP_NS / 1e9, now_ns)

    def run(self) -> Report:
        """The whole stage."""
        self._check.begin()
        self._loop.add(_STDIN, READ, self._obey)
        now_ns = clock.now_ns()
        if self._commands.waiting:
            self._obey(READ)
        while not self._sender.over(now_ns):
            more = now_ns >= self._sender.start_ns and self._sender.dispatch(now_ns)
            now_ns = self._turn_until(now_ns if more else self._wake_ns(now_ns))
            self._due_work(now_ns)
        self._sender.close(now_ns)
        sent, done = self._sender.counts
        health = self._check.end(self._transport.stamps, sent=sent, finished=done)
        return msgspec.structs.replace(self._sender.report(), health=health)

    def _wake_ns(self, now_ns: int) -> int:
        """When the sender, or something else but a descriptor, needs us."""
        wakes_ns = [self._sweep_next_ns]
        if (send_ns := self._sender.wake_ns()) is not None:
            wakes_ns.append(max(send_ns, self._sender.start_ns))
        if self._sender.hungry or self._transport.wants_to_dial:
            wakes_ns.append(now_ns + _FEED_NS)
        return min(wakes_ns)

    def _turn_until(self, wake_ns: int) -> int:
        """Hand over what comes, until then or until an answer has ended; the time that it is now."""
        if self._alarm:
            self._alarm.set(wake_ns)
        sender, check, loop = self._sender, self._check, self._loop
        sender.stirred = False
        now_ns = clock.now_ns()
        while True:
            timeout_s = _SWEEP_NS / 1e9 if self._alarm else max(0.0, (wake_ns - now_ns) / 1e9)
            check.add_turn(loop.turn(timeout_s, wake_ns))
            now_ns = loop.left_ns
            if now_ns >= wake_ns or sender.stirred:
                return now_ns

    def _obey(self, _events: int) -> None:
        for command in self._commands.read():
            now_ns = clock.now_ns()
            if command.stop:
                self._sender.stop(now_ns)
            elif command.drain:
                self._sender.drain(now_ns)
        if self._commands.ended:
            self._loop.remove(_STDIN)

    def _due_work(self, now_ns: int) -> None:
        if self._sender.hungry:
            self._sender.feed()
        if self._transport.wants_to_dial:
            self._transport.dial_waiting()
        if now_ns >= self._sweep_next_ns:
            self._sweep_next_ns = now_ns + _SWEEP_NS
            self._transport.sweep(now_ns)
            self._watch_naps()
        if now_ns >= self._report_next_ns:
            self._report_next_ns = now_ns + _REPORT_NS
            say(self._sender.report())

    def _watch_naps(self) -> None:
        if self._sender.has_turns:
            self._loop.nap_ns = min(self._loop.nap_ns, TURN_NAP_NS)
        before, self._shared_reads = self._shared_reads, self._check.shared_reads
        if self._shared_reads - before > _SHARED_READS_MAX:
            self._loop.shorten_naps()


def _nap_ns(job: Job) -> int:
    if not kernel_may_stamp(job.located.family):
        return 0
    return SHORT_NAP_NS if job.closed or job.cap is not None else NAP_NS


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
    say_line(_STDOUT, msgspec.json.encode(report))


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
