"""A plan of processes: what is started, with what, in which order, and how it is known to be ready. Pure.

It is written down as JSON for the supervisor, so a secret is in it by reference only.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from withstand.spec.stack import Room, Secret, Served, Stack
from withstand.stack.ports import HOST


class Upkeep(Struct, frozen=True, kw_only=True):
    """How a process is kept, whatever it is."""

    room: Room = Room()
    restart: bool = False
    ready_s: float = 600.0
    stop_s: float = 10.0


class Undo(Struct, frozen=True, kw_only=True):
    """What takes away that which a process has left elsewhere, because it was killed."""

    argv: tuple[str, ...]
    trace: str
    """A file below the stack's folder that is there while anything is to be taken away."""


class Process(Struct, frozen=True, kw_only=True):
    """One service. ``argv`` is run without a shell; ``health`` answers 200 once it is ready."""

    name: str
    kind: str
    argv: tuple[str, ...]
    env: dict[str, str | Secret] = {}
    port: int
    scheme: str = "http"
    health: str = "/health"
    """A path, or a URL where it is asked elsewhere."""
    metrics: str | None = None
    """As ``health``."""
    needs: tuple[str, ...] = ()
    """Those that must be ready before it is started."""
    files: dict[str, str] = {}
    """What it reads: path below the stack's folder → text."""
    scratch: tuple[str, ...] = ()
    """Folders that it makes elsewhere; they go with the stack."""
    undo: Undo | None = None
    upkeep: Upkeep = Upkeep()
    reason: str | None = None
    """A pattern of what its log says when it fails; its group is quoted."""
    disaggregation: str | None = None
    """How its prefill and decode come together, as the gateway calls it."""
    serves: tuple[str, ...] = ()
    """The models' names, if it is an engine."""
    bootstrap_port: int | None = None
    """Where decode engines meet it, if it is SGLang's prefill."""

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return f"{self.scheme}://{HOST}:{self.port}"

    @property
    def health_url(self) -> str:
        """What is asked whether it is ready."""
        return self._url(self.health)

    @property
    def health_port(self) -> int | None:
        """Where on this machine that is asked; None = elsewhere."""
        at = urlsplit(self.health_url)
        return at.port if at.hostname == HOST else None

    @property
    def metrics_url(self) -> str | None:
        """Where it tells them, if it does."""
        return self._url(self.metrics) if self.metrics else None

    def _url(self, told: str) -> str:
        return told if "://" in told else self.base_url + told


class Place(Struct, frozen=True, kw_only=True):
    """What of this machine goes into a blueprint."""

    folder: Path
    """The stack's own."""
    python: str
    """Our interpreter, for programs of ours."""
    ports: Mapping[str, int]
    """Name → port."""
    side_ports: Mapping[str, int] = {}
    """Name → a second one, of an engine that has a role."""
    threads: int
    """Cores of this machine."""
    small_model: Path | None = None
    """The small model that comes along, where somebody serves it."""
    small_folder: Path | None = None
    """The same weights in Hugging Face's form, where somebody serves those."""
    small_model_name: str = ""
    programs: Mapping[str, str] = {}
    """What a service is run by that is no part of this package, where it was found: name → path."""
    is_root: bool = False
    """Whether all is started by root."""


class Blueprint(Struct, frozen=True, kw_only=True):
    """All processes of a stack, in an order in which they can be started."""

    made_of: Stack
    file: str | None = None
    """The whole path of the file that says so; None = no file does, or it is not known."""
    processes: tuple[Process, ...]
    door: str
    """The base URL at which the stack is asked."""
    model: str
    """What is asked for there."""
    models: dict[str, str] = {}
    """Engine → its model's name in requests."""
    resting: tuple[Process, ...] = ()
    """Engines that the gateway starts and stops, as it would start them."""
    ports: tuple[int, ...] = ()
    """All that are its own, whoever listens there, and when."""

    @property
    def name(self) -> str:
        """The stack's."""
        return self.made_of.name

    @property
    def scratch(self) -> tuple[str, ...]:
        """Folders elsewhere, that go with the stack."""
        return tuple(path for process in self.processes for path in process.scratch)


def upkeep_of(served: Served) -> Upkeep:
    """As its description wants it."""
    return Upkeep(room=served.room, restart=served.restart, ready_s=served.ready_s, stop_s=served.stop_s)


def in_order(processes: Iterable[Process]) -> tuple[Process, ...]:
    """Each behind those that it needs, else as given."""
    waiting, placed = list(processes), dict[str, Process]()
    while waiting:
        ready = next(p for p in waiting if all(need in placed for need in p.needs))
        waiting.remove(ready)
        placed[ready.name] = ready
    return tuple(placed.values())


def behind(name: str, processes: Sequence[Process]) -> list[Process]:
    """It, and all that it needs, and what those need."""
    found, wanted = list[Process](), [name]
    by_name = {process.name: process for process in processes}
    while wanted:
        process = by_name[wanted.pop()]
        if process not in found:
            found.append(process)
            wanted += process.needs
    return found


def needing(name: str, processes: Sequence[Process]) -> list[str]:
    """Those that must end before ``name`` may."""
    return [process.name for process in processes if name in process.needs]
