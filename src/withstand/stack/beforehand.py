"""What a stack's file names and this machine does not have: said before anything is started, and not by a log."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from withstand.errors import UsageError
from withstand.spec.mistake import wrong
from withstand.spec.stack import Engine, Stack, served_of
from withstand.stack.blueprint import Process
from withstand.stack.composed import GATEWAY
from withstand.stack.secrets import environment, secret

_THEIR_OWN = frozenset({"command", "remote"})
"""Kinds whose ``model`` is a name that only they understand."""
_CHECK_S = 60.0
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
    if stack.runner == "local" or stack.ray.address == "local":  # a cluster may have files that are not here
        _check_models(stack.engines)
    if stack.edge and stack.edge.tls:
        _check_certificate("certificate", stack.edge.tls.certificate)
        _check_certificate("key", stack.edge.tls.key)
    if stack.gateway:
        for engine in stack.engines.values():
            if engine.api_key:
                secret(engine.api_key)


def check_gateway(processes: Iterable[Process], config: dict[str, Any]) -> None:
    """Ask the gateway itself whether it would take its configuration, since nobody else may know it.

    ``config`` is what the stack's file lays over it.

    Raises:
        SpecError: something of that is wrong; the text is the gateway's own, with the key as the stack's file has it.
        UsageError: it would not take it otherwise.
    """
    process = next((process for process in processes if process.kind == GATEWAY), None)  # its copies have the same
    if process is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gateway.json"
        file.write_text(next(iter(process.files.values())), "utf-8")
        try:
            done = subprocess.run(  # noqa: S603  our own module
                [*process.argv[:-1], "check", str(file)],
                env=os.environ | environment(process.env),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_CHECK_S,
                check=False,
            )
        except subprocess.TimeoutExpired:  # it will say so when it is started
            return
    if done.returncode == UsageError.exit_code:  # else it could not be asked: it lacks its extra
        said = " ".join(done.stderr.decode("utf-8", "replace").split()).removeprefix("withstand: ")
        raise _as_the_stack_has_it(said.replace(f" {file}", ""), config)


def _as_the_stack_has_it(said: str, config: dict[str, Any]) -> UsageError:
    """What is wrong in what was written for the gateway is said as it is: nobody has it in a file."""
    found = _WRONG.fullmatch(said)
    if found is None:
        return UsageError(f"{GATEWAY}: {said}")
    what, path = found["what"], found["path"] or ""
    if path and not any(path == known or path.startswith(f"{known}[") for known in _paths(config)):
        return UsageError(f"{GATEWAY}: {said}")
    return wrong(".".join(filter(None, (GATEWAY, "config", path))), what)


def _paths(tree: dict[str, Any]) -> Iterator[str]:
    for key, value in tree.items():
        yield key
        if isinstance(value, dict):
            yield from (f"{key}.{path}" for path in _paths(value))


def _check_models(engines: dict[str, Engine]) -> None:
    for name, engine in engines.items():
        draft = engine.speculative.draft_model if engine.speculative else None
        paths = [("model", engine.model), ("speculative.draft_model", draft)]
        for key, path in paths if engine.kind not in _THEIR_OWN else ():
            if path and path.startswith("/") and not Path(path).exists():
                raise wrong(f"engines.{name}.{key}", f"there is no {path}; correct it")
        if engine.kind == "sim" and engine.model and not Path(engine.model).is_file():
            raise wrong(f"engines.{name}.model", f"there is no file {engine.model}; withstand fit writes one")


def _check_certificate(key: str, path: str) -> None:
    where = f"edge.tls.{key}"
    if not Path(path).is_absolute():
        raise wrong(where, f"nginx looks for {path} in the stack's own folder; give its whole path")
    if not Path(path).is_file():
        raise wrong(where, f"there is no file {path}; correct it")


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
