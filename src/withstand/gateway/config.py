"""All that a gateway's owner may ask for: typed, frozen; unknown keys are refused with their path."""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from withstand.errors import SpecError, UsageError
from withstand.gateway.address import Origin, is_local, origin_of, split_listen
from withstand.gateway.money.stores.opening import holds_password, kind_of
from withstand.gateway.routes import ROUTES
from withstand.gateway.terms import Budget, KeyLimits, Price, TelemetryConfig, UsageConfig

PolicyName = Literal["round_robin", "random", "least_inflight", "session", "prefix"]
POLICY_NAMES = get_args(PolicyName)
Style = Literal["vllm_nixl", "sglang"]
Role = Literal["prefill", "decode"]
SESSION_FIELDS = ("prompt_cache_key", "session_id", "user", "metadata.user_id")
SESSION_BY = (
    "header.x-session-id",
    "body.prompt_cache_key",
    "body.session_id",
    "header.x-user-id",
    "body.user",
    "body.metadata.user_id",
)

Seconds = Annotated[float, Meta(gt=0)]
Weight = Annotated[float, Meta(ge=0, le=1000)]
"""0 = no traffic."""
WEIGHT_MIN = 1e-6
"""Less is none as well: shares of it would be lost in rounding."""
AtOnce = Annotated[int, Meta(ge=1)]


class Poll(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an engine is asked for what it has to do."""

    every_s: Annotated[float, Meta(ge=0.05, le=1)] = 0.5
    path: Annotated[str, Meta(pattern="^/[!-~]*$")] = "/metrics"


class EngineConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One engine's address; ``model`` is the name that it serves, where that is not the model's name here."""

    url: str
    weight: Weight = 1.0
    max_in_flight: AtOnce | None = None
    """None = the model's."""
    model: str | None = None
    api_key_env: str | None = None
    api_key_file: str | None = None
    poll: bool | Poll | None = None
    """None = as the model has it."""
    role: Role | None = None
    """Of a disaggregated model's engines alone."""
    bootstrap_port: Annotated[int, Meta(ge=1, lt=1 << 16)] | None = None
    """Of SGLang's prefill, where it is not SGLang's own default."""

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

    requests: Annotated[int, Meta(ge=0)] = 0
    wait_s: Seconds = 30.0


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

    def poll_of(self, engine: EngineConfig) -> Poll | None:
        """How one of its engines is asked; None = it is not."""
        poll = self.poll if engine.poll is None else engine.poll
        return Poll() if poll is True else poll or None


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
    buffer_bytes: Annotated[int, Meta(ge=4096)] = 256 << 10
    """Of an answer that its client does not read."""


class KeyConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A client's key, as its SHA-256 alone, which may stand in the environment."""

    sha256: Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$")] | None = None
    sha256_env: str | None = None
    models: tuple[str, ...] | None = None
    """None = all."""
    admin: bool = False
    limits: KeyLimits = KeyLimits()
    budget: Budget | None = None


class LogConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The access log: one JSON object a line. ``-`` is stdout, nothing is no log."""

    path: str | None = None


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    listen: str = "127.0.0.1:8080"
    open: bool = False
    """Serve without keys on an address that others reach."""
    workers: Annotated[int, Meta(ge=1, le=64)] = 1
    """Processes."""
    models: dict[str, ModelConfig] = {}
    timeouts: Timeouts = Timeouts()
    routes: dict[str, RouteConfig] = {}
    limits: Limits = Limits()
    keys: dict[str, KeyConfig] = {}
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
    log: LogConfig = LogConfig()
    telemetry: TelemetryConfig | None = None
    keep_alive_comment_s: Seconds | None = None
    """How often a stream that has not begun gets a comment, so that nobody takes it for dead; None = never."""
    drain_s: Seconds = 30.0
    """How long requests may take to end after SIGTERM."""

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
    return config_of({**with_keys(_tree(path)), **instead})


def with_keys(tree: dict[str, Any]) -> dict[str, Any]:
    """The tree with the keys of its ``keys_file`` in it.

    Raises:
        UsageError: that file cannot be read, or is no TOML.
        SpecError: it holds something else, or a key that is there already.
    """
    name = tree.get("keys_file")
    keys = tree.get("keys", {})
    if not isinstance(name, str) or not isinstance(keys, dict):
        return tree  # what is wrong with it is found out with the rest
    told = _tree(Path(name))
    more = told.get("keys", {})
    if set(told) - {"keys"} or not isinstance(more, dict):
        raise SpecError(f"The file {name} may hold nothing but [keys.NAME]; move the rest.")
    if twice := sorted(set(more) & set(keys)):
        raise SpecError(f"The key {twice[0]!r} stands in {name} and in the configuration; keep one.")
    return {**tree, "keys": {**keys, **more}}


def _tree(path: Path) -> dict[str, Any]:
    is_json = path.suffix == ".json"
    try:
        text = path.read_text("utf-8")
        tree = msgspec.json.decode(text) if is_json else tomllib.loads(text)
    except OSError as e:
        raise UsageError(f"The configuration {path} cannot be read: {e.strerror}.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.DecodeError) as e:
        raise UsageError(f"The configuration {path} is no {'JSON' if is_json else 'TOML'}: {e}.") from None
    if not isinstance(tree, dict):
        raise UsageError(f"The configuration {path} is no table of settings; write it as docs/gateway.md has it.")
    return tree


def config_of(tree: object) -> Config:
    """A raw tree, typed and checked.

    Raises:
        SpecError: a key is wrong; the text names it.
    """
    try:
        config = msgspec.convert(tree, Config)
    except msgspec.ValidationError as e:
        raise SpecError(f"The configuration is wrong: {e}.") from None
    _check_listen(config)
    _check_names(config)
    _check_routes(config)
    _check_engines(config)
    _check_sessions(config)
    _check_keys(config)
    _check_money(config)
    return config


def _wrong(path: str, what: str) -> SpecError:
    return SpecError(f"The configuration is wrong: {what} - at `$.{path}`.")


def _check_listen(config: Config) -> None:
    host, _ = split_listen(config.listen)
    if not (is_local(host) or config.keys or config.open):
        raise _wrong(
            "listen", f"{host} may be reached by others, and no key is asked for; add [keys.NAME], or open = true"
        )


def _check_names(config: Config) -> None:
    seen: dict[str, str] = {}
    for name, model in config.models.items():
        for i, alias in enumerate([name, *model.aliases]):
            where = f"models.{name}" + (f".aliases[{i - 1}]" if i else "")
            if alias in seen:
                raise _wrong(where, f"the name {alias!r} is taken by `$.{seen[alias]}`; give each model its own")
            seen[alias] = where


def _check_routes(config: Config) -> None:
    for path in config.routes:
        if path not in ROUTES:
            raise _wrong(f"routes.{path}", f"no route goes to an engine by this path; there are {', '.join(ROUTES)}")


def _check_engines(config: Config) -> None:
    for name, model in config.models.items():
        urls = set()
        for i, engine in enumerate(model.engines):
            where = f"models.{name}.engines[{i}]"
            try:
                origin = engine.origin
            except UsageError as e:
                raise _wrong(f"{where}.url", str(e).rstrip(".")) from None
            if origin in urls:
                raise _wrong(f"{where}.url", f"{engine.url} stands there twice; give it a weight instead")
            check_role(model, engine, where)
            if engine.api_key_env and engine.api_key_file:
                raise _wrong(where, "api_key_env and api_key_file are both given; keep one")
            urls.add(origin)
        _check_disaggregation(name, model)


def check_role(model: ModelConfig, engine: EngineConfig, where: str) -> None:
    """Whether the engine is one for this model.

    Raises:
        SpecError: it is not; the text names ``where``.
    """
    if model.disaggregation is None:
        if engine.role is not None or engine.bootstrap_port is not None:
            raise _wrong(where, "role and bootstrap_port are for a model with disaggregation; add it, or take them out")
    elif engine.role is None:
        raise _wrong(where, 'the model is disaggregated; give the engine a role, "prefill" or "decode"')
    elif engine.bootstrap_port is not None and (engine.role, model.disaggregation.style) != ("prefill", "sglang"):
        raise _wrong(where, "only a prefill engine of style sglang has a bootstrap_port; take it out")


def _check_disaggregation(name: str, model: ModelConfig) -> None:
    told = model.disaggregation
    if told is None:
        return
    if model.engines and len({engine.role for engine in model.engines}) < len(get_args(Role)):
        raise _wrong(f"models.{name}.engines", "a disaggregated model needs engines of both roles; add the other one")
    if told.style == "sglang" and (told.fallback or told.min_prompt_bytes):
        raise _wrong(
            f"models.{name}.disaggregation",
            "SGLang's decode engines cannot prefill; take fallback and min_prompt_bytes out",
        )


def _check_sessions(config: Config) -> None:
    fields = [f"body.{field}" for field in SESSION_FIELDS]
    for name, model in config.models.items():
        for i, place in enumerate(model.session_by):
            if place not in fields and not re.fullmatch(r"header\.[A-Za-z0-9_-]+", place):
                what = f"no session is named by {place!r}; say header.NAME, or one of {', '.join(fields)}"
                raise _wrong(f"models.{name}.session_by[{i}]", what)


def _check_keys(config: Config) -> None:
    names = set(config.models)
    owners: dict[str, str] = {}
    for owner, key in config.keys.items():
        if (key.sha256 is None) == (key.sha256_env is None):
            raise _wrong(f"keys.{owner}", "a key has either sha256 or sha256_env; give one of them")
        if key.sha256 is not None and (first := owners.setdefault(key.sha256.lower(), owner)) != owner:
            raise _wrong(f"keys.{owner}.sha256", f"it is the key of {first!r} too; make one for each")
        for i, name in enumerate(key.models or ()):
            if name not in names:
                raise _wrong(f"keys.{owner}.models[{i}]", f"there is no model {name!r}; name one of $.models")


def _check_money(config: Config) -> None:
    for name in config.prices:
        if name not in config.models:
            raise _wrong(f"prices.{name}", f"there is no model {name!r}; name one of $.models")
    for owner, key in config.keys.items():
        if key.budget is not None and not config.prices:
            raise _wrong(f"keys.{owner}.budget", "without prices nothing is ever spent; add [prices.MODEL]")
        if key.budget is not None and not config.has_state:
            raise _wrong(f"keys.{owner}.budget", 'a restart would forget what was spent; add state = "gateway.sqlite3"')
    if config.state is not None and config.state_env is not None:
        raise _wrong("state", "state and state_env are both given; keep one")
    if config.state is not None:
        _check_state(config.state)


def _check_state(state: str) -> None:
    if holds_password(state):
        raise _wrong("state", "it holds a password; put the whole URL into the variable that state_env names")
    try:
        kind_of(state)
    except UsageError as e:
        raise _wrong("state", str(e).rstrip(".")) from None
