"""STACK.toml: the services that are measured together, typed. Secrets stand here by reference only."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from withstand.hints import explained
from withstand.spec.arrivals import Seconds
from withstand.spec.file_kinds import kind_of, refuse_others
from withstand.spec.mistake import of_file, unfit, wrong
from withstand.spec.parse import tree_from_file

Port = Annotated[int, Meta(ge=1, le=65_535)]
Cpu = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
_BESIDES = ("gateway", "agent", "edge", "monitoring")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


class Secret(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a secret is: in a variable of the one who brings the stack up, or in a file. One of the two."""

    from_env: str | None = None
    from_file: str | None = None


class Room(Struct, frozen=True, forbid_unknown_fields=True):
    """What a service may take of the machine; nothing = what it likes."""

    cpus: tuple[Cpu, ...] = ()
    """The cores that it may run on."""
    memory_gb: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    """Of private memory (RLIMIT_DATA), each of its processes for itself."""


class Deploy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a service runs elsewhere than on this machine; read by exports and the runner ``ray``.

    Here only ``min_replicas = 0`` counts, with ``idle_s``: the gateway starts that engine when it is asked for.
    """

    image: str | None = None
    """The container's; None = its kind's own."""
    gpus: Annotated[int, Meta(ge=0)] = 0
    """Of each replica."""
    gpu: str | None = None
    """Their type, as the place calls it: ``H100``, ``A10G``."""
    min_replicas: Annotated[int, Meta(ge=0)] = 1
    """0 = none while nobody asks; the first request then waits for a cold start."""
    max_replicas: Count | None = None
    """None = as many as ``min_replicas``, at least 1."""
    target_requests: Count = 16
    """Requests at once that one replica is meant for; more, and another is started."""
    idle_s: Seconds = 300.0
    """How long a replica stays without a request."""
    longest_stream_s: Annotated[float, Meta(gt=0, le=86_400)] = 600.0
    """How long an answer may take; a replica that is to end waits for it."""

    @property
    def most_replicas(self) -> int:
        """The upper end, with what nobody said."""
        return self.max_replicas or max(1, self.min_replicas)


class Served(Struct, frozen=True, kw_only=True):
    """What all services have."""

    port: Port | None = None
    """None = any that is free."""
    env: dict[str, str | Secret] = {}
    room: Room = Room()
    restart: bool = False
    """Start it again when it ends by itself, later and later."""
    ready_s: Seconds = 600.0
    """How long it may take until it answers."""
    stop_s: Annotated[float, Meta(ge=0, le=3600)] = 10.0
    """How long it may take to end; then it is killed."""
    deploy: Deploy = Deploy()


class Speculative(Struct, frozen=True, forbid_unknown_fields=True):
    """Speculative decoding: by a draft model, or by n-grams of the prompt where there is none."""

    tokens: Count = 4
    draft_model: str | None = None


class Engine(Served, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One engine. None = as the engine does by itself; what an engine cannot do is refused."""

    kind: str
    python: str | None = None
    """The interpreter of the environment that the engine is installed in."""
    binary: str | None = None
    """The engine's own program, where it is one and not the one on the path."""
    url: str | None = None
    """Of a remote one, which is not started."""
    api_key: Secret | None = None
    model: str | None = None
    """A folder, file or name that the engine understands; None = the small model that comes along."""
    served_as: str | None = None
    """The model's name in requests."""
    context: Count | None = None
    """Tokens that one request may use, prompt and answer together."""
    max_sequences: Count | None = None
    """Requests that are worked on at once."""
    threads: Count | None = None
    dtype: str | None = None
    quantization: str | None = None
    tensor_parallel: Count | None = None
    prefix_caching: bool | None = None
    chunked_prefill: bool | None = None
    speculative: Speculative | None = None
    kv_cache_gb: Annotated[float, Meta(gt=0)] | None = None
    kv_offload_gb: Annotated[float, Meta(gt=0)] | None = None
    lmcache: bool | None = None
    dummy_weights: bool | None = None
    health: Annotated[str, Meta(pattern=r"^/[!-~]*$")] | None = None
    """The path that answers 200 once it is ready; None = its kind's own."""
    role: Literal["prefill", "decode"] | None = None
    """Its part where prefill and decode are apart."""
    args: tuple[str, ...] = ()
    """Handed over as they are, behind all others."""


class Gateway(Served, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Our gateway in front of all engines; ``config`` is laid over the configuration that is written for it."""

    config: dict[str, Any] = {}
    copies: Annotated[int, Meta(ge=1, le=16)] = 1
    """Processes of it, each on a port of its own; an edge shares requests out among them."""


class Tls(Struct, frozen=True, forbid_unknown_fields=True):
    """Files in PEM."""

    certificate: str
    key: str


class Edge(Served, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """nginx in front of the gateway, set for streams."""

    program: str | None = None
    """nginx itself; None = the one on the path, or in /usr/sbin."""
    tls: Tls | None = None
    gateways: tuple[str, ...] = ()
    """URLs of others besides the stack's own."""
    balance: Literal["least_conn", "hash", "round_robin"] = "least_conn"
    hash_header: Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]+$")] = "x-session-id"
    """What ``hash`` goes by; the client's address where a request has none."""
    max_body_mb: Annotated[float, Meta(gt=0, le=1e6)] = 64.0
    read_timeout_s: Seconds = 3600.0
    """How long an answer may be silent."""
    workers: Count | None = None
    """Processes of nginx; None = a core each, four at most."""
    keepalive: Count = 256
    """Idle connections to what is behind that a worker keeps."""


class Monitoring(Served, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prometheus, and what Grafana is to load; the benchmark itself and the machine are watched too."""

    program: str | None = None
    """Prometheus itself; None = the one on the path."""
    scrape_s: Annotated[float, Meta(ge=0.2, le=60)] = 2.0
    keep_days: Count = 1


class Agent(Served, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Our agent in front of the gateway, or of the first engine; ``config`` is laid over what is written for it."""

    config: dict[str, Any] = {}


class Ray(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The Ray that engines run on."""

    address: str = "local"
    """Of a cluster (``auto``, ``HOST:6379``); ``local`` = one of its own, on this machine, that ends with the stack."""
    port: Port | None = None
    """Where its proxy listens. None = any that is free; a cluster's Serve that runs already has one."""
    token: Secret | None = None
    """The cluster's, where it wants one. A Ray of its own makes itself one."""
    python: str | None = None
    """The interpreter of the environment that has ``ray[serve]`` and vLLM."""
    prefix_aware: bool = False
    """Send a request where most of its prompt has been before."""
    stream_batching_ms: Annotated[float, Meta(ge=0)] = 0.0
    """For how long Ray gathers tokens before it sends them. Its own 50 ms make TTFT and ITL untrue."""


class Stack(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    name: str = ""
    """None = the file's."""
    engines: Annotated[dict[str, Engine], Meta(min_length=1)]
    gateway: Gateway | None = None
    edge: Edge | None = None
    monitoring: Monitoring | None = None
    agent: Agent | None = None
    runner: Literal["local", "ray"] = "local"
    """What starts the engines."""
    ray: Ray = Ray()
    plan: dict[str, Any] = {}
    """How it is measured, as in a plan's file; checked when it is."""

    def besides(self) -> list[tuple[str, Served]]:
        """All that is no engine, by its key."""
        return [(key, each) for key in _BESIDES if (each := getattr(self, key)) is not None]


def is_stack(tree: dict[str, Any]) -> bool:
    """Whether a file is one of these, and not a plan."""
    return kind_of(tree) == "stack"


def stack_from_file(path: Path) -> Stack:
    """The typed stack of a TOML, YAML or JSON file.

    Raises:
        UsageError: it cannot be read.
        SpecError: a key is wrong; the text names it, and the file.
    """
    tree = tree_from_file(path, "stack")
    refuse_others(path, tree, "a stack's", "stack")
    with of_file(path):
        return stack_of(tree, path.stem)


def name_in_file(path: Path) -> str:
    """The name of the stack in a file, whatever else is wrong with it by now.

    Raises:
        UsageError: it cannot be read.
    """
    return str(tree_from_file(path, "stack").get("name") or _name_of(path.stem))


def stack_of(tree: dict[str, Any], name: str) -> Stack:
    """A raw tree, typed and checked; ``name`` is for one that has none."""
    try:
        stack = msgspec.convert(tree, Stack)
    except msgspec.ValidationError as e:
        raise unfit(explained(str(e), tree, Stack)) from None
    stack = msgspec.structs.replace(stack, name=stack.name or _name_of(name))
    _check_name("name", stack.name)
    for each, engine in stack.engines.items():
        _check_name(f"engines.{each}", each)
        if not (engine.served_as or "").isprintable():
            raise wrong(f"engines.{each}.served_as", "a model's name is printed; leave control characters out")
    for where, replicas in _replicas(stack):
        if replicas.max_replicas is not None and replicas.max_replicas < replicas.min_replicas:
            raise wrong(f"{where}.deploy.max_replicas", "there are fewer of them than min_replicas")
    for where, secret in secrets_of(stack):
        if (secret.from_env is None) == (secret.from_file is None):
            raise wrong(where, "give either from_env or from_file")
    _check_ports(stack)
    return stack


def _check_ports(stack: Stack) -> None:
    """Two that listen on one may both seem to be well, since either answers for the other."""
    wanted = [(f"{where}.port", each.port) for where, each in _listening(stack) if each.port]
    owners = dict[int, str]()
    for where, port in wanted:
        if port in owners:
            raise wrong(where, f"{owners[port]} has {port} already; give it another one, or none to get a free one")
        owners[port] = where


def _listening(stack: Stack) -> list[tuple[str, Served | Ray]]:
    """Of the engines those that are started here; Ray's are behind its own port."""
    if stack.runner == "ray":
        return [("ray", stack.ray), *stack.besides()]
    engines = [(f"engines.{name}", each) for name, each in stack.engines.items() if each.kind != "remote"]
    return [*engines, *stack.besides()]


def _name_of(stem: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:40].strip("-") or "stack"


def _check_name(where: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise wrong(where, f"{name!r} is no name; take at most 40 small letters, digits and dashes between them")


def _replicas(stack: Stack) -> list[tuple[str, Deploy]]:
    return [(where, each.deploy) for where, each in served_of(stack)]


def served_of(stack: Stack) -> list[tuple[str, Served]]:
    """Where each service stands → what it is."""
    return [(f"engines.{name}", engine) for name, engine in stack.engines.items()] + stack.besides()


def secrets_of(stack: Stack) -> list[tuple[str, Secret]]:
    """Where each stands → what it is."""
    found = [(f"{at}.env.{key}", value) for at, each in served_of(stack) for key, value in each.env.items()]
    found += [(f"engines.{name}.api_key", engine.api_key) for name, engine in stack.engines.items()]  # type: ignore[misc]
    found += [("ray.token", stack.ray.token)]  # type: ignore[list-item]
    return [(where, value) for where, value in found if isinstance(value, Secret)]
