"""STACK.toml: the services that are measured together, typed. Secrets stand here by reference only."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from withstand.errors import SpecError
from withstand.spec.arrivals import Seconds
from withstand.spec.parse import plan_from_file

Port = Annotated[int, Meta(ge=1, le=65_535)]
Cpu = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


class Secret(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a secret is: in a variable of the one who brings the stack up, or in a file. One of the two."""

    from_env: str | None = None
    from_file: str | None = None


class Room(Struct, frozen=True, forbid_unknown_fields=True):
    """What a service may take of the machine; nothing = what it likes."""

    cpus: tuple[Cpu, ...] = ()
    """The cores that it may run on."""
    memory_gb: Annotated[float, Meta(gt=0)] | None = None
    """Of private memory (RLIMIT_DATA), each of its processes for itself."""


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


class Stack(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    name: str = ""
    """None = the file's."""
    engines: Annotated[dict[str, Engine], Meta(min_length=1)]
    gateway: Gateway | None = None
    plan: dict[str, Any] = {}
    """How it is measured, as in a plan's file; checked when it is."""


def is_stack(tree: dict[str, Any]) -> bool:
    """Whether a file is one of these, and not a plan."""
    return "engines" in tree


def stack_from_file(path: Path) -> Stack:
    """The typed stack of a TOML, YAML or JSON file.

    Raises:
        UsageError: it cannot be read.
        SpecError: a key is wrong; the text names it.
    """
    return stack_of(plan_from_file(path), path.stem)


def stack_of(tree: dict[str, Any], name: str) -> Stack:
    """A raw tree, typed and checked; ``name`` is for one that has none."""
    try:
        stack = msgspec.convert(tree, Stack)
    except msgspec.ValidationError as e:
        raise SpecError(f"The stack is wrong: {e}. `withstand schema stack` prints what is allowed.") from None
    stack = msgspec.structs.replace(stack, name=stack.name or _name_of(name))
    _check_name("name", stack.name)
    for each in stack.engines:
        _check_name(f"engines.{each}", each)
    for where, secret in _secrets(stack):
        if (secret.from_env is None) == (secret.from_file is None):
            raise _wrong(where, "give either from_env or from_file")
    return stack


def _name_of(stem: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:40].strip("-") or "stack"


def _check_name(where: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise _wrong(where, f"{name!r} is no name; take at most 40 small letters, digits and dashes between them")


def _secrets(stack: Stack) -> list[tuple[str, Secret]]:
    served: list[tuple[str, Served]] = [(f"engines.{name}", engine) for name, engine in stack.engines.items()]
    if stack.gateway:
        served.append(("gateway", stack.gateway))
    found = [(f"{at}.env.{key}", value) for at, each in served for key, value in each.env.items()]
    found += [(f"engines.{name}.api_key", engine.api_key) for name, engine in stack.engines.items()]  # type: ignore[misc]
    return [(where, value) for where, value in found if isinstance(value, Secret)]


def _wrong(path: str, what: str) -> SpecError:
    return SpecError(f"The stack is wrong: {what} - at `$.{path}`.")
