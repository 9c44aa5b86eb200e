"""The child that looks at the server's side: ``watching`` starts it, gives it a ``WatchJob`` and asks it for looks."""

import os
import signal
from collections.abc import Callable, Iterator

import msgspec

from withstand.app.watching import Exporter, WatchJob, asker_of
from withstand.errors import SpecError, TargetError
from withstand.load.ask import Asker
from withstand.load.lines import Lines, say_line
from withstand.processes.courtesy import go_after_others
from withstand.record import HOST, Sample, Seen, encode_sample
from withstand.spec import Timeouts
from withstand.watch import host, nvml
from withstand.watch.dcgm import read_gpus
from withstand.watch.lookout import Lookout, NothingThereError, Sight, Source
from withstand.wire.engine_metrics import read_engine

_STDIN, _STDOUT = 0, 1
_TIMEOUTS = Timeouts(connect_s=2.0, read_s=2.0, total_s=2.0)
_PATIENCE_S = 0.5
_OK, _SERVER_ERROR = 200, 500
_MOVED = frozenset({301, 302, 307, 308})


def main() -> None:
    """Look until the parent lets go."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    go_after_others()  # who sends comes first
    lines = Lines(_STDIN)
    job = msgspec.json.decode(lines.wait() or b"null", type=WatchJob | None)
    if job is not None:
        _serve(job, lines)
    os._exit(0)  # at once: a thread may hang in a server's silence


def _serve(job: WatchJob, lines: Lines) -> None:
    lookout = Lookout(_sources(job), job.interval_s, job.epoch_ns, _appender(job.samples))
    lookout.start()
    while lines.wait():
        lookout.look_now(_PATIENCE_S)
        say_line(_STDOUT, b"looked")


def _appender(path: str) -> Callable[[Sample], None]:
    """A line is one write: threads do not get in each other's way, and a crash cuts the last line at most."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)

    def append(sample: Sample) -> None:
        try:
            os.write(descriptor, encode_sample(sample) + b"\n")
        except OSError:  # the disk is full: the records need what is left of it
            os._exit(0)

    return append


def _sources(job: WatchJob) -> Iterator[Source]:
    machine = host.Machine()
    yield lambda: [Sight(HOST, machine.values())]
    if host.has_gpus():
        library = nvml.opened()
        yield lambda: [Sight(name, values) for name, values in host.gpus(host.gpu_text()).items()]
        yield lambda: [Sight(name, {Seen.GPU_JOULES: joules}) for name, joules in library.joules().items()]
    for exporter in job.exporters:
        yield _Metrics(exporter)


class _Metrics:
    """One exporter; its connection is kept."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter
        self._path = exporter.path
        self._asker: Asker | None = None

    def __call__(self) -> list[Sight]:
        try:
            if self._asker is None:
                self._asker = asker_of(self._exporter, _TIMEOUTS)
            status, body = self._asker.ask("GET", self._path)
        except TargetError:  # it may be there next time
            self._asker = None
            return []
        except SpecError:
            raise NothingThereError from None
        if status in _MOVED and not self._path.endswith("/"):
            self._path += "/"  # where an application is mounted, some frameworks insist on it
            return self()
        if _OK != status < _SERVER_ERROR:
            raise NothingThereError
        return list(_sights(self._exporter.name, body.decode("utf-8", "replace") if status == _OK else ""))


def _sights(name: str, text: str) -> Iterator[Sight]:
    """An engine's, and each GPU's that stands there."""
    engine, values = read_engine(text)
    yield Sight(name, values, engine)
    yield from (Sight(f"{name} {gpu}", told) for gpu, told in read_gpus(text).items())


if __name__ == "__main__":
    main()
