"""All that a gateway's owner may ask for: typed, frozen; unknown keys are refused with their path."""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from withstand.errors import SpecError, UsageError
from withstand.gateway.address import Origin, origin_of
from withstand.gateway.config_checks import check, check_values
from withstand.gateway.hosting.config import HostConfig, Hosted, Seconds
from withstand.gateway.terms import Budget, KeyLimits, Price, TelemetryConfig, UsageConfig
from withstand.hints import explained

PolicyName = Literal["round_robin", "random", "least_inflight", "session", "prefix"]
POLICY_NAMES = get_args(PolicyName)
Style = Literal["vllm_nixl", "sglang"]
Role = Literal["prefill", "decode"]
SESSION_BY = (
    "header.x-session-id",
    "body.prompt_cache_key",
    "body.session_id",
    "header.x-user-id",
    "body.user",
    "body.metadata.user_id",
)

Weight = Annotated[float, Meta(ge=0, le=1000)]
"""0 = no traffic."""
WEIGHT_MIN = 1e-6
"""Less is none as well: shares of it would be lost in rounding."""
_FAILS_S = 5.0
"""Besides ``stop_s``, until a command that did not get ready is known to have ended."""
AtOnce = Annotated[int, Meta(ge=1)]


class Poll(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an engine is asked for what it has to do."""

    every_s: Annotated[float, Meta(ge=0.05, le=1)] = 0.5
    path: Annotated[str, Meta(pattern="^/[!-~]*$")] = "/metrics"


class Health(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an engine is asked whether it is well."""

    path: Annotated[str, Meta(pattern="^/[!-~]*$")] = "/health"
    every_s: Annotated[float, Meta(ge=0.05, le=3600)] = 5.0
    timeout_s: Seconds = 2.0
    unhealthy: Annotated[int, Meta(ge=1)] = 3
    """Failures in a row that take it out."""
    healthy: Annotated[int, Meta(ge=1)] = 2
    """Successes in a row that take it back."""


class EngineConfig(Hosted, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One engine's address; ``model`` is the name that it serves, where that is not the model's name here.

    With a ``command`` the gateway starts it itself.
    """

    url: str
    weight: Weight = 1.0
    max_in_flight: AtOnce | None = None
    """None = the model's."""
    model: str | None = None
    api_key_env: str | None = None
    api_key_file: str | None = None
    poll: bool | Poll | None = None
    """None = as the model has it."""
    health: bool | Health | None = None
    """None = as the model has it."""
    role: Role | None = None
    """Of a disaggregated model's engines alone."""
    bootstrap_port: Annotated[int, Meta(ge=1, lt=1 << 16)] | None = None
    """Of SGLang's prefill, where it is not SGLang's own default."""
    backup: bool = False
    """It is asked only where the others cannot be."""

    @property
    def origin(self) -> Origin:
        """The address, taken apart."""
        return origin_of(self.url)


class Disaggregation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model's prefill and decode engines come together."""

    style: Style
    fallback: bool = False
    """Decode does all of it where prefill cannot."""
    prefill_s: Seconds | None = None
    """How long prefill may take before another, or decode, is asked; None = as long as the first byte."""
    min_prompt_bytes: Annotated[int, Meta(ge=0)] = 0
    """Of a request's body: shorter ones are not split."""


class QueueConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many requests may wait for an engine that has room, and for how long each."""

    requests: Annotated[int, Meta(ge=0)] | None = None
    wait_s: Seconds | None = None


class Line(Struct, frozen=True):
    """A queue with nothing left open."""

    requests: int
    wait_s: float


class ModelConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model's engines, and how one of them is chosen."""

    engines: tuple[EngineConfig, ...] = ()
    aliases: tuple[str, ...] = ()
    policy: PolicyName = "least_inflight"
    disaggregation: Disaggregation | None = None
    max_in_flight: AtOnce | None = None
    """Of each engine that says nothing else; None = it is given all that come."""
    queue: QueueConfig = QueueConfig()
    load_bound: Annotated[float, Meta(ge=1, le=100)] = 1.5
    """Times its share of what is under way, an engine may have before ``session`` and ``prefix`` pass it over."""
    session_by: tuple[str, ...] = SESSION_BY
    warm_up_s: Annotated[float, Meta(ge=0, le=3600)] = 10.0
    poll: bool | Poll = False
    health: bool | Health = False

    def poll_of(self, engine: EngineConfig) -> Poll | None:
        """How one of its engines is asked; None = it is not."""
        poll = self.poll if engine.poll is None else engine.poll
        return Poll() if poll is True else poll or None

    def health_of(self, engine: EngineConfig) -> Health | None:
        """How one of its engines is checked; None = it is not."""
        health = self.health if engine.health is None else engine.health
        return Health() if health is True else health or None

    @property
    def line(self) -> Line:
        """The queue. Where nothing is said nobody waits, but for an engine's start: until it has, or has failed."""
        start_s = max((e.start_timeout_s + e.stop_s + _FAILS_S for e in self.engines if e.command), default=None)
        requests, wait_s = (0, 30.0) if start_s is None else (1000, start_s)
        return Line(requests if self.queue.requests is None else self.queue.requests, self.queue.wait_s or wait_s)


class Timeouts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long an engine may take: to accept, to begin its answer, between two pieces, for all of it."""

    connect_s: Seconds = 5.0
    first_byte_s: Seconds = 600.0
    idle_s: Seconds = 600.0
    total_s: Seconds = 3600.0


class RouteTimeouts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Those of one route; what is not given is as for all routes."""

    connect_s: Seconds | None = None
    first_byte_s: Seconds | None = None
    idle_s: Seconds | None = None
    total_s: Seconds | None = None

    def over(self, common: Timeouts) -> Timeouts:
        """These, and the common ones where none is given."""
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return msgspec.structs.replace(common, **given)


class RouteConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one route has for itself."""

    timeouts: RouteTimeouts = RouteTimeouts()


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client may ask of this process."""

    head_bytes: Annotated[int, Meta(ge=1024, le=1 << 20)] = 64 << 10
    body_bytes: Annotated[int, Meta(ge=1024)] = 64 << 20
    request_s: Seconds = 60.0
    """From a request's first byte to its last."""
    keep_alive_s: Seconds = 75.0
    requests: Annotated[int, Meta(ge=1)] = 10_000
    """Under way at once."""
    held_bytes: Annotated[int, Meta(ge=1024)] = 1 << 30
    """Of all requests that are being read, wait, or have not been answered yet."""
    buffer_bytes: Annotated[int, Meta(ge=4096, le=1 << 30)] = 256 << 10
    """Of an answer that its client does not read."""


class Cors(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pages in browsers that may ask: scheme, host and port as the browser has them; ``*`` = all."""

    origins: tuple[str, ...] = ()
    max_age_s: Annotated[int, Meta(ge=0)] = 600
    """How long a browser need not ask again."""


class KeyConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A client's key, as its SHA-256 alone, which may stand in the environment."""

    sha256: str | None = None
    sha256_env: str | None = None
    models: tuple[str, ...] | None = None
    """None = all."""
    admin: bool = False
    limits: KeyLimits = KeyLimits()
    budget: Budget | None = None


class LogConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The access log: one JSON object a line. ``-`` is stdout."""

    path: Annotated[str, Meta(min_length=1)]


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    listen: str = "127.0.0.1:8080"
    open: bool = False
    """Serve without keys on an address that others reach."""
    workers: Annotated[int, Meta(ge=1, le=64)] = 1
    """Processes."""
    busy_polling: bool = False
    """No worker's core ever sleeps: each takes all of one, and a request need not wait until a core has woken."""
    cache_warming: bool = True
    """While there are requests, what one runs through stays in the core's caches, for 0.8 % of the core."""
    models: dict[str, ModelConfig] = {}
    timeouts: Timeouts = Timeouts()
    routes: dict[str, RouteConfig] = {}
    limits: Limits = Limits()
    cors: Cors = Cors()
    keys: dict[str, KeyConfig] = {}
    host: HostConfig = HostConfig()
    keys_file: str | None = None
    """More ``[keys.NAME]``, so that this file may be shown around."""
    key_limits: KeyLimits = KeyLimits()
    """Of each key that has none of its own; without keys, of all clients together."""
    prices: dict[str, Price] = {}
    usage: UsageConfig = UsageConfig()
    state: str | None = None
    """Where usage is kept: SQLite's file, or the URL of a server. None = in memory."""
    state_env: str | None = None
    """The environment variable that holds it: a URL with a password."""
    log: LogConfig | None = None
    telemetry: TelemetryConfig | None = None
    keep_alive_comment_s: Seconds | None = None
    """How often a stream that has not begun gets a comment, so that nobody takes it for dead; None = never."""
    open_metrics: bool = True
    """``/metrics`` is for everybody who reaches the address; else it takes a key with ``admin``."""
    drain_s: Seconds = 30.0
    """How long requests may take to end after SIGTERM."""

    @property
    def log_path(self) -> str | None:
        """Where the access log goes; None = there is none."""
        return None if self.log is None else self.log.path

    @property
    def has_state(self) -> bool:
        """Usage outlives the process."""
        return self.state is not None or self.state_env is not None

    @property
    def counts_usage(self) -> bool:
        """Somebody wants to know what keys use."""
        limits = (self.key_limits, *(key.limits for key in self.keys.values()))
        return bool(self.prices) or self.usage.ask or self.has_state or any(each != KeyLimits() for each in limits)

    def timeouts_of(self, path: str) -> Timeouts:
        """Those that hold for a route."""
        return self.routes[path].timeouts.over(self.timeouts) if path in self.routes else self.timeouts


def config_from_file(path: Path, **instead: object) -> Config:
    """The typed configuration; what is given in ``instead`` stands in for the file's.

    Raises:
        UsageError: the file cannot be read, or is no TOML.
        SpecError: a key is wrong; the text names it.
    """
    tree = _tree(path)
    if "engines" in tree and "models" not in tree:
        raise SpecError(f"{path} is a stack's file, not a gateway's: withstand up {path}.")
    with of_file(path):
        check_values(tree)  # before a file of that name is looked for
        config = config_of({**with_keys(tree, path.parent), **instead})
    if not config.models:
        raise SpecError(f"The configuration {path} names no model; add [models.NAME] and [[models.NAME.engines]].")
    return config


@contextmanager
def of_file(path: Path) -> Iterator[None]:
    """What is found wrong in a configuration meanwhile is so in this file.

    Raises:
        SpecError: the same, with the file's name.
    """
    try:
        yield
    except SpecError as e:
        raise SpecError(str(e).replace("The configuration is", f"The configuration {path} is", 1)) from None


def with_keys(tree: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The tree with the keys of its ``keys_file`` in it, which is looked for in ``folder``: beside the configuration.

    Raises:
        UsageError: that file cannot be read, or is no TOML.
        SpecError: it holds something else, or a key that is there already.
    """
    name = tree.get("keys_file")
    keys = tree.get("keys", {})
    if not isinstance(name, str) or not isinstance(keys, dict):
        return tree  # what is wrong with it is found out with the rest
    told = _tree(folder / name, "keys_file")
    more = told.get("keys", {})
    if set(told) - {"keys"} or not isinstance(more, dict):
        raise SpecError(f"The file {name} may hold nothing but [keys.NAME]; move the rest.")
    if twice := sorted(set(more) & set(keys)):
        raise SpecError(f"The key {twice[0]!r} stands in {name} and in the configuration; keep one.")
    return {**tree, "keys": {**keys, **more}}


def _tree(path: Path, what: str = "configuration") -> dict[str, Any]:
    is_json = path.suffix == ".json"
    try:
        text = path.read_text("utf-8-sig")
        tree = msgspec.json.decode(text) if is_json else tomllib.loads(text)
    except OSError as e:
        raise UsageError(f"The {what} {path} cannot be read: {e.strerror}.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.DecodeError) as e:
        raise UsageError(f"The {what} {path} is no {'JSON' if is_json else 'TOML'}: {e}.") from None
    if not isinstance(tree, dict):
        raise UsageError(f"The {what} {path} is no table of settings; write it as docs/gateway.md has it.")
    return tree


def config_of(tree: object) -> Config:
    """A raw tree, typed and checked.

    Raises:
        SpecError: a key is wrong; the text names it.
    """
    check_values(tree)
    try:
        config = msgspec.convert(tree, Config)
    except msgspec.ValidationError as e:
        raise SpecError(f"The configuration is wrong: {explained(str(e), tree, Config)}.") from None
    check(config)
    return config
