"""Whether a start would find what a configuration asks for, as far as that can be seen without changing anything."""

import os
import sqlite3
from importlib.util import find_spec
from pathlib import Path

from withstand.errors import UsageError, extra
from withstand.files import why_closed
from withstand.gateway.config import Config
from withstand.gateway.money.stores.opening import kind_of, told_state

_MODULES = {"redis": "redis", "postgres": "psycopg"}


def preflight(config: Config) -> list[str]:
    """What its owner may not have meant, in sentences. No server is asked.

    Raises:
        UsageError: a start would be refused.
    """
    for module in ("fastapi", "uvicorn", "uvloop"):
        _need(module, "gateway", "The gateway")
    if config.telemetry is not None:
        _need("opentelemetry.exporter.otlp.proto.http", "gateway-otel", "[telemetry]")
    _check_state(config)
    if config.log.path not in {None, "-"}:
        _check_writable(Path(config.log.path or ""), "log", "Choose another in [log].")
    return [
        f"The model {name!r} has no engine, and answers 503 until one is added over /admin/engines."
        for name, model in config.models.items()
        if not model.engines
    ]


def _need(module: str, part: str, who: str) -> None:
    try:
        found = find_spec(module) is not None
    except ModuleNotFoundError:  # of what it is a part of
        found = False
    if not found:
        raise UsageError(f"{who} needs {module.partition('.')[0]}: {extra(part)}.")


def _check_state(config: Config) -> None:
    state = told_state(config.state, config.state_env)
    if state is None:
        return
    kind = kind_of(state)
    if kind is not None:
        _need(_MODULES[kind], f"gateway-{kind}", "This state")
        return
    path = Path(state)
    _check_writable(path, "state", "Name another file.")
    if path.exists():
        try:
            with sqlite3.connect(path.resolve().as_uri() + "?mode=ro", uri=True) as db:
                db.execute("PRAGMA schema_version")
        except sqlite3.Error as e:
            raise UsageError(f"The state {path} cannot be used: {e}. Name another file.") from None


def _check_writable(path: Path, what: str, cure: str) -> None:
    if why := why_closed(path):
        raise UsageError(f"The {what} {path} {why}. {cure}")
    if path.is_dir():
        raise UsageError(f"The {what} {path} is a folder. {cure}")
    if not path.exists() and not path.parent.is_dir():
        raise UsageError(f"The {what} {path} cannot be written: there is no folder {path.parent}. {cure}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"The {what} {path} cannot be written: permission denied. {cure}")
