"""The server's side of a run: a process of its own looks at it, so that it never disturbs who sends.

This is the parent's side; the child is ``watch_part``. What goes wrong there costs samples, never the run.
"""

import contextlib
import select
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from withstand import __version__
from withstand.app.endpoint import Endpoint
from withstand.app.screen import Screen
from withstand.app.work_folder import temporary_folder
from withstand.load.address import Address, locate, parse_address
from withstand.load.ask import Asker
from withstand.load.child import Child
from withstand.load.masking import Mask
from withstand.load.owner import Route
from withstand.load.tls import make_context
from withstand.runs import RunFolder
from withstand.spec import Plan, Timeouts, Watch

_LOOK_S, _END_S = 0.5, 1.0
_WHOSE = "watch.urls / --metrics-url"
_PATH = "/metrics"


class Exporter(msgspec.Struct, frozen=True, kw_only=True):
    """An address that may tell metrics, and how it is asked."""

    name: str
    address: Address
    path: str
    headers: dict[str, str] = {}
    """With the API key in it, where it is the target itself: it goes through a pipe, never into a command line."""
    cacert: str | None = None
    insecure: bool = False


class WatchJob(msgspec.Struct, frozen=True, kw_only=True):
    """What the child is told first, as a line of JSON; every line after it asks for a look now."""

    epoch_ns: int
    samples: str
    interval_s: float
    exporters: tuple[Exporter, ...]


def check_watch(watch: Watch) -> None:
    """What can be wrong with it, before anything is begun.

    Raises:
        SpecError: an address is none.
    """
    for url in watch.urls:
        parse_address(url, _WHOSE)


@contextlib.contextmanager
def watching(
    plan: Plan, endpoint: Endpoint, folder: RunFolder, epoch_ns: int, screen: Screen
) -> Iterator[Callable[[], None]]:
    """Looks go on within the context; what it gives has everything looked at now, and waits for that half a second."""
    if not plan.watch.interval_s:
        yield lambda: None
        return
    exporters = exporters_of(plan.asked_watch, endpoint)
    job = WatchJob(
        epoch_ns=epoch_ns,
        samples=str(folder.samples_file.absolute()),
        interval_s=plan.watch.interval_s,
        exporters=exporters,
    )
    with temporary_folder("withstand-watch-") as room:
        lookout = _Child(job, room / "watch.log")
        try:
            yield lookout.look
        finally:
            why = lookout.end()
    if why:
        screen.message(f"The server's side was not looked at to the end: what does that has ended ({why}).")
    else:
        _tell_silent(plan.asked_watch, exporters, folder, screen)


def exporters_of(watch: Watch, endpoint: Endpoint) -> tuple[Exporter, ...]:
    """Those that were named, or else the target's own; the key is told to nobody but the target."""
    if not watch.urls:
        own = endpoint.address
        return (_asked(endpoint, own, own.root_url(_PATH), endpoint.headers),)
    return tuple(_exporter(parse_address(url, _WHOSE), endpoint) for url in watch.urls)


def asker_of(exporter: Exporter, timeouts: Timeouts) -> Asker:
    """Who asks it.

    Raises:
        WithstandError: nobody can: no such host, no such certificates.
    """
    context = make_context(exporter.cacert, insecure=exporter.insecure) if exporter.address.tls else None
    located = locate(exporter.address, timeouts.connect_s)
    route = Route(address=exporter.address, located=located, context=context, timeouts=timeouts)
    return Asker(route, exporter.headers, Mask(()))


def _exporter(address: Address, endpoint: Endpoint) -> Exporter:
    path, own = address.prefix or _PATH, endpoint.address
    if (address.tls, address.host, address.port, address.unix_path) == (own.tls, own.host, own.port, own.unix_path):
        return _asked(endpoint, address, path, endpoint.headers)
    return _asked(endpoint, address, path, {"User-Agent": f"withstand/{__version__}"})


def _asked(endpoint: Endpoint, address: Address, path: str, headers: dict[str, str]) -> Exporter:
    """With the certificates that are trusted for the target."""
    target = endpoint.target
    return Exporter(
        name=_name(address, path),
        address=address,
        path=path,
        headers=headers,
        cacert=target.cacert,
        insecure=target.insecure,
    )


def _name(address: Address, path: str) -> str:
    scheme = "https" if address.tls else "http"
    return f"unix:{address.unix_path}" if address.unix_path else f"{scheme}://{address.host_header}{path}"


class _Child:
    """The child as its parent sees it. One that has once kept us waiting is not waited for again."""

    def __init__(self, job: WatchJob, log: Path) -> None:
        self._child = Child("withstand.app.watch_part", log)
        self._child.send(msgspec.json.encode(job))
        self._prompt = True

    def look(self) -> None:
        """Have it look, and wait for that where it has always been prompt."""
        if self._child.ended:
            return
        self._child.send(b"look")
        if self._prompt and not self._has_answered():
            self._prompt = False

    def _has_answered(self) -> bool:
        readable, _, _ = select.select([self._child], [], [], _LOOK_S)
        return bool(readable) and bool(self._child.hear())

    def end(self) -> str | None:
        """It writes no more. Why it had failed before."""
        why = self._child.why() if self._child.failed else None
        self._child.end(_END_S)
        return why


def _tell_silent(watch: Watch, exporters: tuple[Exporter, ...], folder: RunFolder, screen: Screen) -> None:
    """That a target has no metrics is normal; that an address does not answer which somebody has named is not."""
    if not watch.urls:
        return
    heard = {sample.source for sample in folder.samples()}
    for exporter in exporters:
        if not any(source == exporter.name or source.startswith(f"{exporter.name} ") for source in heard):
            screen.message(f"--metrics-url {exporter.name} told nothing that is known here; docs/watch.md lists that.")
