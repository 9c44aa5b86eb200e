"""What types cannot say of a configuration: what goes together, and what stands for what."""

import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from withstand.errors import SpecError, UsageError
from withstand.gateway.address import Origin, check_elsewhere, is_local, origin_of, split_listen
from withstand.gateway.hosting.config import Hosted, wrong_with
from withstand.gateway.money.stores.opening import holds_password, kind_of
from withstand.gateway.routes import ROUTES
from withstand.hints import meant

if TYPE_CHECKING:
    from withstand.gateway.config import Config, EngineConfig, ModelConfig

_SESSION_FIELDS = ("prompt_cache_key", "session_id", "user", "metadata.user_id")
_ROLES = ("prefill", "decode")
_WORKERS = (
    "only a gateway of one process starts engines, and this one has workers = {}; "
    "say workers = 1, or start the engine yourself and take its command out"
)


def check(config: "Config") -> None:
    """Whether all of it can be.

    Raises:
        SpecError: it cannot; the text names the key.
    """
    _check_listen(config)
    _check_names(config)
    _check_routes(config)
    _check_engines(config)
    _check_hosting(config)
    _check_sessions(config)
    _check_cors(config)
    _check_keys(config)
    _check_money(config)
    _check_telemetry(config)


def _wrong(path: str, what: str) -> SpecError:
    return SpecError(f"The configuration is wrong: {what} - at `$.{path}`.")


def check_values(tree: Any, path: str = "$") -> None:
    """Whether all values of a raw tree are good for anything.

    Raises:
        SpecError: a number is ``inf`` or ``nan``, which TOML has, or a text has a zero byte, which no name may have.
    """
    if isinstance(tree, str) and "\0" in tree:
        raise _wrong(path.removeprefix("$."), "there is a zero byte in it; leave that out")
    if isinstance(tree, float) and not math.isfinite(tree):
        raise _wrong(path.removeprefix("$."), f"{tree} is no number to count with; give one that ends")
    if isinstance(tree, dict):
        for name, value in tree.items():
            check_values(value, f"{path}.{name}")
    elif isinstance(tree, list):
        for i, value in enumerate(tree):
            check_values(value, f"{path}[{i}]")


def _check_listen(config: "Config") -> None:
    host, _ = split_listen(config.listen)
    if not (is_local(host) or config.keys or config.open):
        raise _wrong(
            "listen", f"{host} may be reached by others, and no key is asked for; add [keys.NAME], or open = true"
        )


def _check_names(config: "Config") -> None:
    seen: dict[str, str] = {}
    for name, model in config.models.items():
        for i, alias in enumerate([name, *model.aliases]):
            where = f"models.{name}" + (f".aliases[{i - 1}]" if i else "")
            if not alias:
                raise _wrong(where, "a model without a name cannot be asked for; give it one")
            if alias in seen:
                raise _wrong(where, f"the name {alias!r} is taken by `$.{seen[alias]}`; give each model its own")
            seen[alias] = where


def _check_routes(config: "Config") -> None:
    for path in config.routes:
        if path not in ROUTES:
            raise _wrong(f"routes.{path}", f"no route goes to an engine by this path; there are {', '.join(ROUTES)}")


def _check_engines(config: "Config") -> None:
    for name, model in config.models.items():
        urls = set()
        if model.engines and all(engine.backup for engine in model.engines):
            raise _wrong(f"models.{name}.engines", "all are backups, of nothing; leave backup out of one")
        for i, engine in enumerate(model.engines):
            where = f"models.{name}.engines[{i}]"
            try:
                origin = engine.origin
                check_elsewhere(origin, config.listen)
            except UsageError as e:
                raise _wrong(f"{where}.url", str(e).rstrip(".")) from None
            if origin in urls:
                raise _wrong(f"{where}.url", f"{engine.url} stands there twice; give it a weight instead")
            check_role(model, engine, where)
            if engine.api_key_env and engine.api_key_file:
                raise _wrong(where, "api_key_env and api_key_file are both given; keep one")
            urls.add(origin)
        _check_disaggregation(name, model)


def check_role(model: "ModelConfig", engine: "EngineConfig", where: str) -> None:
    """Whether the engine is one for this model.

    Raises:
        SpecError: it is not; the text names ``where``.
    """
    if model.disaggregation is None:
        if engine.role is not None or engine.bootstrap_port is not None:
            raise _wrong(where, "role and bootstrap_port are for a model with disaggregation; add it, or take them out")
    elif engine.backup:
        raise _wrong(
            where, "a disaggregated model has no backup; take it out, or say fallback = true for decode's sake"
        )
    elif engine.role is None:
        raise _wrong(where, 'the model is disaggregated; give the engine a role, "prefill" or "decode"')
    elif engine.bootstrap_port is not None and (engine.role, model.disaggregation.style) != ("prefill", "sglang"):
        raise _wrong(where, "only a prefill engine of style sglang has a bootstrap_port; take it out")


def _check_disaggregation(name: str, model: "ModelConfig") -> None:
    told = model.disaggregation
    if told is None:
        return
    if model.engines and len({engine.role for engine in model.engines}) < len(_ROLES):
        raise _wrong(f"models.{name}.engines", "a disaggregated model needs engines of both roles; add the other one")
    if told.style == "sglang" and (told.fallback or told.min_prompt_bytes):
        raise _wrong(
            f"models.{name}.disaggregation",
            "SGLang's decode engines cannot prefill; take fallback and min_prompt_bytes out",
        )


def _check_hosting(config: "Config") -> None:
    commands: dict[Origin, tuple[str, Hosted]] = {}
    for name, model in config.models.items():
        for i, engine in enumerate(model.engines):
            where = f"models.{name}.engines[{i}]"
            wrong = wrong_with(engine, config.host)
            if wrong is not None:
                raise _wrong(f"{where}.{wrong[0]}", wrong[1])
            if engine.command is None:
                continue
            if config.workers > 1:
                raise _wrong(f"{where}.command", _WORKERS.format(config.workers))
            if engine.origin.tls:
                raise _wrong(f"{where}.url", "an engine with a command is asked by http; put TLS elsewhere")
            first, other = commands.setdefault(engine.origin, (where, engine))
            if engine.command != other.command:
                raise _wrong(f"{where}.command", f"`$.{first}` has another one for {engine.url}; give it there alone")
            if model.queue.requests == 0:
                raise _wrong(f"models.{name}.queue.requests", "nobody could wait for the engine's start; allow some")
        _check_pair(name, model, config.host.memory_gb)


def _check_pair(name: str, model: "ModelConfig", memory_gb: float | None) -> None:
    """Each of the two would have the other stopped, for ever."""
    if model.disaggregation is None or memory_gb is None or not model.engines:
        return
    least = [min(e.memory_gb or 0.0 for e in model.engines if e.role == role) for role in _ROLES]
    if sum(least) > memory_gb:
        what = f"prefill and decode must be up together and take {sum(least):g} GB, of which [host] has {memory_gb:g}"
        raise _wrong(f"models.{name}.engines", what)


def _check_sessions(config: "Config") -> None:
    fields = [f"body.{field}" for field in _SESSION_FIELDS]
    for name, model in config.models.items():
        for i, place in enumerate(model.session_by):
            if place not in fields and not re.fullmatch(r"header\.[A-Za-z0-9_-]+", place):
                what = f"no session is named by {place!r}; say header.NAME, or one of {', '.join(fields)}"
                raise _wrong(f"models.{name}.session_by[{i}]", what)


def _check_cors(config: "Config") -> None:
    for i, origin in enumerate(config.cors.origins):
        if origin != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\sA-Z]+", origin):
            what = f"{origin!r} is no origin; write it as browsers do, without a path: https://chat.example.com, or *"
            raise _wrong(f"cors.origins[{i}]", what)


def _check_keys(config: "Config") -> None:
    names = list(config.models)
    owners: dict[str, str] = {}
    for owner, key in config.keys.items():
        if (key.sha256 is None) == (key.sha256_env is None):
            raise _wrong(f"keys.{owner}", "a key has either sha256 or sha256_env; give one of them")
        if key.sha256 is not None and not re.fullmatch("[0-9a-fA-F]{64}", key.sha256):
            what = (
                "a SHA-256 is 64 hexadecimal digits, and never the key itself; `withstand gateway keys hash` makes one"
            )
            raise _wrong(f"keys.{owner}.sha256", what)
        if key.sha256 is not None and (first := owners.setdefault(key.sha256.lower(), owner)) != owner:
            raise _wrong(f"keys.{owner}.sha256", f"it is the key of {first!r} too; make one for each")
        for i, name in enumerate(key.models or ()):
            if name not in names:
                raise _wrong(f"keys.{owner}.models[{i}]", _no_model(name, names))


def _no_model(name: str, known: Iterable[str]) -> str:
    return f"there is no model {name!r}{meant(name, known)}; name one of $.models"


def _check_money(config: "Config") -> None:
    for name in config.prices:
        if name not in config.models:
            raise _wrong(f"prices.{name}", _no_model(name, config.models))
    for owner, key in config.keys.items():
        free = [name for name in config.models if key.models is None or name in key.models]
        free = [name for name in free if name not in config.prices]
        if key.budget is not None and config.prices and free:
            cure = f'add [prices."{free[0]}"] (input = 0 where it is free), or models = [...] without it'
            raise _wrong(f"keys.{owner}.budget", f"it would not bound {free[0]!r}, which has no price; {cure}")
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


def _check_telemetry(config: "Config") -> None:
    if config.telemetry is None:
        return
    try:
        origin_of(config.telemetry.otlp)
    except UsageError as e:
        raise _wrong("telemetry.otlp", str(e).rstrip(".")) from None
