"""A stack's processes as containers: the blueprint of this machine, with a network between the services. Pure.

Each listens on all addresses of its container, and knows the others by name. A secret stays a reference: the name of a
variable (or of a file) becomes the key under which the place keeps it.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec
from msgspec import Struct

from withstand import __version__
from withstand.spec.mistake import wrong
from withstand.spec.stack import Deploy, Secret, Served, Stack
from withstand.stack.blueprint import Place, Process
from withstand.stack.composed import AGENT, GATEWAY, composed, service_names, told_of
from withstand.stack.exports.carried import STATE, Carried, carried
from withstand.stack.exports.secrets import key_of
from withstand.stack.model import NAME as SMALL_NAME
from withstand.stack.model import SMALL_FILE
from withstand.stack.ports import HOST

OURS: Final = f"withstand:{__version__}"
"""The image that ``dockerfile`` describes."""
CONFIG: Final = PurePosixPath("/etc/withstand")
_CACHE = PurePosixPath("/opt/withstand")
_SMALL = _CACHE / "models" / SMALL_FILE
_FETCH = "from withstand.stack.model import ready_model; ready_model(lambda *_: None)"
_IMAGES: Final[Mapping[str, str]] = {GATEWAY: OURS, AGENT: OURS, "llamacpp": OURS, "vllm": "vllm/vllm-openai:latest"}
_PYTHONS: Final[Mapping[str, str]] = {OURS: "python"}
_OWN_ADDRESS = ("VLLM_NIXL_SIDE_CHANNEL_HOST",)
"""What decode is told of where prefill's cache is to be had."""
_FIRST_PORT, _FIRST_SIDE_PORT = 8000, 9000
WHEEL: Final = f"withstand-{__version__}-py3-none-any.whl"
"""What ``pip wheel`` makes of a clone; the image is built with it, for no index has it."""
_LIBGOMP = "RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*"
CORES: Final = 4
"""Of an engine that computes on the CPU, where nobody has said how many threads it has."""
_IDLE_KINDS = {GATEWAY, AGENT, "command", "sim"}
"""Those of which we do not know that they compute."""
_IDLE_GB, _CPU_GB, _GPU_GB = 0.5, 4, 16
_ANY = "0.0.0.0"  # noqa: S104  inside a container, which decides itself what it shows


class Container(Struct, frozen=True, kw_only=True):
    """One service as a container. ``secrets``: variable → key; ``volumes``: models and files that must be there."""

    process: Process
    image: str
    argv: tuple[str, ...]
    env: dict[str, str]
    secrets: dict[str, str]
    files: dict[str, str]
    volumes: tuple[str, ...]
    deploy: Deploy
    cores: int
    """That it is meant to keep busy: an engine's threads."""
    memory_gb: float
    """That it may count on."""
    own_address: tuple[str, ...] = ()
    """Variables that hold the address at which the others reach it."""
    keys_file: str | None = None
    """This machine's file of the gateway's keys."""
    writes: bool = False
    """It wants a place for what it keeps."""
    extras: tuple[str, ...] = ()
    """Of our package, that it needs besides."""

    @property
    def name(self) -> str:
        """The service's."""
        return self.process.name

    @property
    def is_in_front(self) -> bool:
        """Whether it is the gateway or the agent, and no engine."""
        return self.process.kind in {GATEWAY, AGENT}

    @property
    def end_s(self) -> float:
        """How long it may take to end: until its last stream has."""
        return self.deploy.longest_stream_s + self.process.upkeep.stop_s


def containers(stack: Stack, host: Callable[[str], str] = str) -> tuple[Container, ...]:
    """All services that are started, in an order in which they can be. ``host``: name → that by which others ask it.

    Raises:
        SpecError: one cannot run elsewhere as it is described.
    """
    ports = {name: _FIRST_PORT + i for i, name in enumerate(service_names(stack))}
    side_ports = {name: _FIRST_SIDE_PORT + i for i, name in enumerate(_with_a_role(stack))}
    place = Place(
        folder=Path(CONFIG),
        python="python",
        ports=ports,
        side_ports=side_ports,
        threads=CORES,
        small_model=Path(_SMALL),
        small_model_name=SMALL_NAME,
    )
    blueprint = composed(stack, place)
    addresses = {f"http://{HOST}:{port}": f"http://{host(name)}:{port}" for name, port in ports.items()}
    return tuple(_container(process, _served(stack, process), addresses) for process in blueprint.processes)


def _with_a_role(stack: Stack) -> list[str]:
    """Names of the engines that do prefill or decode alone.

    Raises:
        SpecError: decode would not find the prefill that has its prompt.
    """
    found = [name for name, told in stack.engines.items() if told.role]
    for name in found:
        told = stack.engines[name]
        if told.kind == "sglang" and told.role == "prefill" and told.deploy.most_replicas > 1:
            raise wrong(f"engines.{name}.deploy.max_replicas", "SGLang's prefill is found by its name, so there is one")
    return found


def refuse_own_address(all_of_them: Iterable[Container], place: str) -> None:
    """Of places that do not tell a container its own address.

    Raises:
        SpecError: one needs to know it.
    """
    for each in all_of_them:
        if each.own_address:
            what = f"{place} tells no container its own address, by which decode finds it; take kubernetes or ray"
            raise wrong(f"engines.{each.name}.role", what)


def dockerfile(all_of_them: Iterable[Container]) -> dict[str, str]:
    """The file of the image of ours, where one of them runs in it; with the small model, where one serves that."""
    ours = [each for each in all_of_them if each.image == OURS]
    small = any(str(_SMALL) in each.argv for each in ours)
    has_llamacpp = any(each.process.kind == "llamacpp" for each in ours)
    extras = sorted({"agent", "engine", "gateway"}.union(*(each.extras for each in ours)))
    writes = any(each.writes for each in ours)
    lines = (
        "# In this folder; CLONE is that of withstand, where its pyproject.toml lies:",
        f"# {build()}",
        "FROM python:3.12-slim",
        *([_LIBGOMP] if has_llamacpp else []),
        f"COPY {WHEEL} /tmp/",
        f"RUN pip install --no-cache-dir '/tmp/{WHEEL}[{','.join(extras)}]'",
        *([f"RUN WITHSTAND_CACHE={_CACHE} python -c '{_FETCH}'"] if small else []),
        "RUN useradd --create-home --uid 10001 withstand",
        *([f"RUN install -d -o withstand {STATE}"] if writes else []),
        "USER 10001",
    )
    return {"Dockerfile": "\n".join(lines) + "\n"} if ours else {}


def build() -> str:
    """The commands that make the image of ours, in the folder of its file."""
    return f"{wheel()} && docker build -t {OURS} ."


def wheel() -> str:
    """The command that makes what the image is made of."""
    return "pip wheel --no-deps --wheel-dir . CLONE"


def cores_of(told: Served, kind: str) -> int:
    """As many as are its own, or as it has threads."""
    threads = getattr(told, "threads", None)
    computes = kind == "llamacpp" or (kind not in _IDLE_KINDS and not told.deploy.gpus)
    return len(told.room.cpus) or threads or (CORES if computes else 1)


def _memory_gb(told: Served, kind: str) -> float:
    """Its own room, or a guess: weights go through it on their way to a GPU."""
    if told.room.memory_gb:
        return told.room.memory_gb
    return _GPU_GB if told.deploy.gpus else _IDLE_GB if kind in _IDLE_KINDS else _CPU_GB


def door(stack: Stack) -> str:
    """The name of the service that clients ask.

    Raises:
        SpecError: there is nothing to run.
    """
    names = service_names(stack)
    if not names:
        raise wrong("engines", "all of them are remote and there is no gateway; nothing is left to be exported")
    return AGENT if stack.agent else GATEWAY if stack.gateway else names[0]


def _served(stack: Stack, process: Process) -> Served:
    told = told_of(stack, process.name)
    assert told
    return told


def _container(process: Process, told: Served, addresses: Mapping[str, str]) -> Container:
    image = told.deploy.image or _IMAGES.get(process.kind)
    if image is None:
        raise wrong(f"engines.{process.name}.deploy.image", f"{process.kind!r} has no image of its own; name one")
    secrets = {key: key_of(value) for key, value in process.env.items() if isinstance(value, Secret)}
    files, brought = {}, list[Carried]()
    for path, text in process.files.items():
        brought.append(carried(process.kind, _inside(msgspec.json.decode(text), addresses)))
        config = brought[-1].config
        secrets |= {name: key for name, key in brought[-1].secrets.items() if name not in process.env}
        config.setdefault("drain_s", told.deploy.longest_stream_s)
        if not config.keys() & {"keys", "keys_file"}:
            config.setdefault("open", True)  # whom it is shown to is the place's to say
        files[path] = msgspec.json.format(msgspec.json.encode(config), indent=2).decode() + "\n"
    return Container(
        process=process,
        image=image,
        argv=_argv(process, getattr(told, "python", None), image),
        env={key: value for key, value in process.env.items() if isinstance(value, str) and key not in _OWN_ADDRESS},
        own_address=tuple(key for key in process.env if key in _OWN_ADDRESS),
        secrets=dict(sorted(secrets.items())),
        files=files,
        volumes=(*volumes_of(getattr(told, "model", None)), *(path for each in brought for path in each.reads)),
        keys_file=next((each.keys_file for each in brought if each.keys_file), None),
        writes=any(each.writes for each in brought),
        extras=tuple(extra for each in brought for extra in each.extras),
        deploy=told.deploy,
        cores=cores_of(told, process.kind),
        memory_gb=_memory_gb(told, process.kind),
    )


def _argv(process: Process, python: str | None, image: str) -> tuple[str, ...]:
    """The environment's interpreter is the image's own, and loopback is everywhere."""
    first = _PYTHONS.get(image, "python3") if process.argv[0] in {python, "python"} else process.argv[0]
    return (first, *(_ANY if part == HOST else part for part in process.argv[1:]))


def _inside(tree: Any, names: Mapping[str, str]) -> Any:
    """Addresses of this machine as names of services."""
    if isinstance(tree, dict):
        return {key: _inside(value, names) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_inside(value, names) for value in tree]
    if isinstance(tree, str):
        host, colon, port = tree.rpartition(":")
        return names.get(tree, f"{_ANY}:{port}" if colon and host == HOST else tree)
    return tree


def volumes_of(model: str | None) -> tuple[str, ...]:
    """A path is a file or folder of a volume; anything else is a name that the engine fetches by itself."""
    return (model.rstrip("/"),) if model and model.startswith("/") else ()
