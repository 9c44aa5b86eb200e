"""Whether a start would find what a configuration asks for, as far as that can be seen without changing anything."""

import errno
import os
import shutil
import socket
import sqlite3
from importlib.util import find_spec
from pathlib import Path

from withstand.errors import SpecError, UsageError, extra
from withstand.files import why_closed
from withstand.gateway.address import not_to_be_had, split_listen
from withstand.gateway.config import Config
from withstand.gateway.hosting.config import Hosted
from withstand.gateway.money.stores.opening import kind_of, told_state

_MODULES = {"redis": "redis", "postgres": "psycopg"}


def preflight(config: Config) -> list[str]:
    """What its owner may not have meant, in sentences. No server is asked, but one for the name in ``listen``.

    Raises:
        UsageError: a start would be refused, or one of an engine of ours would fail.
    """
    for module in ("fastapi", "uvicorn", "uvloop"):
        _need(module, "gateway", "The gateway")
    if config.telemetry is not None:
        _need("opentelemetry.exporter.otlp.proto.http", "gateway-otel", "[telemetry]")
    _check_state(config)
    if config.log is not None and config.log.path != "-":
        _check_writable(Path(config.log.path), "log", "Choose another in [log].")
    _check_address(config.listen)
    for name, model in config.models.items():
        for i, engine in enumerate(model.engines):
            if wrong := _wrong_with(engine):
                raise SpecError(
                    f"The configuration is wrong: {wrong[1]} - at `$.models.{name}.engines[{i}].{wrong[0]}`."
                )
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


def _check_address(listen: str) -> None:
    """Whether it may be bound; one that is in use now may be free by then."""
    host, port = split_listen(listen)
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
    except OSError as e:
        if e.errno != errno.EADDRINUSE:
            raise not_to_be_had(listen, e) from None


def _wrong_with(hosted: Hosted) -> tuple[str, str] | None:
    """The field by which its command cannot be started here, and why."""
    if not hosted.command:
        return None
    folder = Path(hosted.cwd or ".")
    if not folder.is_dir():
        return "cwd", f"there is no folder {folder}; make it, or name another"
    program = hosted.command[0]
    named = str(folder.absolute() / program) if "/" in program else program
    if shutil.which(named, path=hosted.env.get("PATH")) is None:
        return "command", f"there is no program {program}; install it, or name it with its path"
    return None


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
        if not path.is_file():
            raise UsageError(f"The state {path} is no file. Name another file.")
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
