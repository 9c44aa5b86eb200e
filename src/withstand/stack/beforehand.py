"""What a stack's file names and this machine does not have: said before anything is started, and not by a log."""

import os
import re
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from withstand.errors import EngineError, UsageError, extra
from withstand.files import why_closed
from withstand.sim import parameters_from_file
from withstand.spec.mistake import wrong
from withstand.spec.stack import Engine, Gateway, Stack, Tls, served_of
from withstand.stack.blueprint import Blueprint, Process
from withstand.stack.composed import AGENT, GATEWAY
from withstand.stack.flags import why_absent
from withstand.stack.llamacpp import SERVER, missing
from withstand.stack.secrets import environment, secret

_THEIR_OWN = frozenset({"command", "remote"})
"""Kinds whose ``model`` is a name that only they understand."""
_FILES = frozenset({"llamacpp", "sim"})
"""Kinds whose ``model`` is a file."""
_PATHS = ("/", "./", "../")
"""So begins what is no hub's name."""
_CHECK_S = 60.0
_OURS = "withstand: "
"""So begins what our programs say of a mistake."""
_WRONG = re.compile(r"The configuration is wrong: (?P<what>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?\.")


def check_machine(stack: Stack) -> None:
    """Cores, files and keys.

    Raises:
        SpecError: one is not here; the text names the key.
        UsageError: a key is not where it should be.
    """
    cores = _cores()
    for where, each in served_of(stack):
        if cores and (missing := sorted(set(each.room.cpus) - cores)):
            raise wrong(
                f"{where}.room.cpus", f"there is no core {missing[0]} here, but {_ranges(cores)}; take some of those"
            )
    for where, path in _programs(stack):
        _check_seen(where, path)
    if stack.runner == "local" or stack.ray.address == "local":  # a cluster may have files that are not here
        _check_models(stack.engines)
    if stack.edge and stack.edge.tls:
        _check_certificate("certificate", stack.edge.tls.certificate)
        _check_certificate("key", stack.edge.tls.key)
        _check_pair(stack.edge.tls)
    if stack.gateway:
        for name, engine in stack.engines.items():
            if engine.api_key:
                secret(engine.api_key, f"engines.{name}.api_key")


def check_programs(blueprint: Blueprint) -> None:
    """They are there; ours are asked themselves whether they would take their configuration: nobody else may know it.

    Raises:
        SpecError: something that the stack's file lays over it is wrong; the text is the program's own, with the key as
            that file has it.
        UsageError: it would not take it otherwise.
        EngineError: a program is not there.
    """
    found = {p.name: why_absent(p, environment(p.env, p.name)) for p in (*blueprint.processes, *blueprint.resting)}
    if absent := "; ".join(f"{name}: {why}" for name, why in found.items() if why):
        raise EngineError(f"{absent}. Install it, or correct its path in the stack's file.")
    _check_carried([*blueprint.processes, *blueprint.resting])
    for told_of in (blueprint.made_of.gateway, blueprint.made_of.agent):
        kind = GATEWAY if isinstance(told_of, Gateway) else AGENT
        if told_of and (ours := [process for process in blueprint.processes if process.kind == kind]):
            _check_ours(ours[0], told_of.config)  # copies are alike


def _check_carried(processes: Sequence[Process]) -> None:
    """The llama.cpp of the extra."""
    names = [p.name for p in processes if p.argv[0] == sys.executable and SERVER in p.argv]
    if names and (absent := missing()):
        raise EngineError(
            f"{', '.join(names)}: llama.cpp is not installed ({', '.join(absent)} missing): {extra('engine')}, or name "
            "a llama-server of your own by `binary`."
        )


def _check_ours(process: Process, config: dict[str, Any]) -> None:
    """``config`` is what the stack's file lays over its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{process.kind}.json"
        file.write_text(next(iter(process.files.values())), "utf-8")
        try:
            done = subprocess.run(  # noqa: S603  our own module
                [*process.argv[:-1], "check", str(file)],
                env=os.environ | environment(process.env, process.name),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_CHECK_S,
                check=False,
            )
        except subprocess.TimeoutExpired:  # it will say so when it is started
            return
    said = " ".join(done.stderr.decode("utf-8", "replace").split())
    if done.returncode and said.startswith(_OURS):  # else it could not be asked: it lacks its extra
        told = said.removeprefix(_OURS).replace(f" {file}", "")
        if done.returncode != UsageError.exit_code:
            raise EngineError(f"{process.kind}: {told}")
        raise _as_the_stack_has_it(process.kind, told, config)


def _as_the_stack_has_it(kind: str, said: str, config: dict[str, Any]) -> UsageError:
    """What is wrong in what was written for a program is said as it is: nobody has it in a file."""
    found = _WRONG.fullmatch(said)
    if found is None:
        return UsageError(f"{kind}: {said}")
    what, path = found["what"], found["path"] or ""
    if path and not any(path == known or path.startswith(f"{known}[") for known in _paths(config)):
        return UsageError(f"{kind}: {said}")
    return wrong(".".join(filter(None, (kind, "config", path))), what)


def _paths(tree: dict[str, Any]) -> Iterator[str]:
    for key, value in tree.items():
        yield key
        if isinstance(value, dict):
            yield from (f"{key}.{path}" for path in _paths(value))


def _programs(stack: Stack) -> Iterator[tuple[str, str]]:
    """Where each that is given as a path stands → the path."""
    told: dict[str, str | None] = {"ray.python": stack.ray.python if stack.runner == "ray" else None}
    for name, engine in stack.engines.items() if stack.runner == "local" else ():
        command = engine.args[0] if engine.kind == "command" and engine.args else None
        told |= {f"engines.{name}.{key}": getattr(engine, key) for key in ("python", "binary")}
        told[f"engines.{name}.args[0]"] = command
    if stack.edge:
        told["edge.program"] = stack.edge.program
    if stack.monitoring:
        told["monitoring.program"] = stack.monitoring.program
    return ((where, path) for where, path in told.items() if path and "/" in path)


def _check_seen(where: str, path: str) -> None:
    """A file in a closed folder may be there, which nobody is told."""
    if why := why_closed(Path(path)):
        raise wrong(where, f"{path} {why}")


def _check_models(engines: dict[str, Engine]) -> None:
    for name, engine in engines.items():
        draft = engine.speculative.draft_model if engine.speculative else None
        paths = [("model", engine.model), ("speculative.draft_model", draft)]
        for key, path in paths if engine.kind not in _THEIR_OWN else ():
            if path and (engine.kind in _FILES or path.startswith(_PATHS)):
                _check_seen(f"engines.{name}.{key}", path)
            if path and engine.kind == "llamacpp" and not Path(path).is_file():
                raise wrong(f"engines.{name}.{key}", f"there is no file {path}; correct it")
            if path and path.startswith(_PATHS) and not Path(path).exists():
                raise wrong(f"engines.{name}.{key}", f"there is no {path}; correct it")
        if engine.kind == "sim" and engine.model:
            _check_simulated(f"engines.{name}.model", Path(engine.model))


def _check_simulated(where: str, path: Path) -> None:
    if not path.is_file():
        raise wrong(where, f"there is no file {path}; withstand fit writes one")
    try:
        parameters_from_file(path)
    except UsageError as e:
        raise wrong(where, str(e).rstrip(".")) from None


def _check_certificate(key: str, path: str) -> None:
    where = f"edge.tls.{key}"
    if not Path(path).is_absolute():
        raise wrong(where, f"nginx would look for {path} in the stack's own folder; give its whole path")
    _check_seen(where, path)
    if not Path(path).is_file():
        raise wrong(where, f"there is no file {path}; correct it")


def _check_pair(tls: Tls) -> None:
    """As nginx will: it knows no password, and reads them as the same user."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_verify_locations(tls.certificate)
    except (OSError, ssl.SSLError) as e:
        raise wrong("edge.tls.certificate", f"{tls.certificate} is no certificate (PEM): {_why_no_pem(e)}") from None
    try:
        context.load_cert_chain(tls.certificate, tls.key, password="")
    except (OSError, ssl.SSLError) as e:
        if getattr(e, "reason", None) == "KEY_VALUES_MISMATCH":
            raise wrong("edge.tls.key", f"{tls.key} is not the key of {tls.certificate}; give that one") from None
        why = f"{tls.key} is no key (PEM) without a password: {_why_no_pem(e)}"
        raise wrong("edge.tls.key", why) from None


def _why_no_pem(e: OSError) -> str:
    """What OpenSSL says is for those who know it."""
    return "give another file" if isinstance(e, ssl.SSLError) else str(e.strerror)


def _cores() -> set[int]:
    """That we may run on; empty = nobody tells, and nobody is held to it."""
    return set(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else set()


def _ranges(cores: set[int]) -> str:
    return ", ".join(f"{first} to {last}" if last > first else str(first) for first, last in _runs(sorted(cores)))


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = numbers[0]
    for number, following in zip(numbers, (*numbers[1:], None), strict=True):
        if following != number + 1:
            yield first, number
            first = following or 0
