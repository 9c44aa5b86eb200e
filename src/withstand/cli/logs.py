"""``withstand logs``: what services say."""

import re
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import click

from withstand import clock
from withstand.cli.options import Verb
from withstand.cli.output import say, write_result
from withstand.cli.stacks import meant, not_there, only
from withstand.cli.streams import is_heard
from withstand.errors import EngineError, UsageError
from withstand.processes.log import is_lost
from withstand.stack.health import no_service
from withstand.stack.resting import left_to_gateway
from withstand.stack.standing import Standing, standings
from withstand.stack.state import log_of

_PART_BYTES = 64 << 10
_STEP_BYTES = 1 << 20
_LOOK_S = 0.25


@click.command("logs", cls=Verb)
@click.argument("name", metavar="[NAME|STACK.toml", required=False)
@click.argument("service", metavar="[SERVICE]]", required=False)
@click.option("--follow", "-f", is_flag=True, help="Go on until Ctrl-C.")
@click.option("--lines", "-n", type=click.IntRange(min=0), default=50, show_default=True, help="Of each, the last N.")
def verb(name: str | None, service: str | None, *, follow: bool, lines: int) -> None:
    """Print what a stack's services say.

    Without NAME of the only stack that is up, without SERVICE of all its services. One word is a service where no stack
    has that name.
    """
    standing, service = _meant(name, service)
    services = _services(standing)
    if service is not None and service not in services:
        raise UsageError(no_service(standing.name, service, services))
    logs = {each: log_of(standing.folder, each) for each in ([service] if service else services)}
    _check_files(logs, alone=service is not None)
    widest = 0 if service else max(map(len, logs))
    ends = {each: _show_tail(path, lines, each, widest) for each, path in logs.items()}
    for each, path in logs.items():
        _say_if_silent(each, path, rests=each in left_to_gateway(standing.blueprint))
    while follow and is_heard() and standing.folder.exists():
        clock.sleep_s(_LOOK_S)
        ends = {each: _show_from(logs[each], ends[each], each, widest) for each in logs}


def _meant(name: str | None, service: str | None) -> tuple[Standing, str | None]:
    """One word is a stack's name where there is one of it, or else one of the only stack's services."""
    found = standings()
    if name and service is None and name not in {standing.name for standing in found}:
        alone = only(found)
        if alone and name in _services(alone):
            return alone, name
        if alone and not Path(name).suffix:
            raise not_there(name, found, _services(alone))
    return meant(name), service


def _services(standing: Standing) -> list[str]:
    return [process.name for process in standing.blueprint.processes] + left_to_gateway(standing.blueprint)


def _say_if_silent(service: str, path: Path, *, rests: bool) -> None:
    try:
        silent = not is_lost(path) and not path.stat().st_size
    except FileNotFoundError:
        silent = True
    if silent:
        why = ": the gateway starts it when somebody asks for it" if rests else ""
        say(f"{service} says nothing yet{why}.")


def _check_files(logs: Mapping[str, Path], *, alone: bool) -> None:
    """A service may put anything in the place of its log.

    Raises:
        EngineError: nothing else is asked for.
    """
    for service, path in logs.items():
        if is_lost(path):
            what = f"{service}: what stands in the place of its log, {path}, is no file."
            if alone:
                raise EngineError(what)
            say(what)


def _show_tail(path: Path, lines: int, service: str, widest: int) -> int:
    """Where the last whole line ends."""
    at, end = _last(path, lines)
    while at < end and (upto := _show_from(path, at, service, widest)) > at:  # else it was cut meanwhile
        at = upto
    return at


def _last(path: Path, lines: int) -> tuple[int, int]:
    """Where so many whole lines begin and end."""
    if is_lost(path):
        return 0, 0
    try:
        with path.open("rb") as log:
            newlines = list(islice(_newlines(log), lines + 1))
    except FileNotFoundError:  # it has not been started yet
        return 0, 0
    return newlines[lines] + 1 if len(newlines) > lines else 0, newlines[0] + 1 if newlines else 0


def _newlines(log: BinaryIO) -> Iterator[int]:
    """Where they are, from the end on."""
    at = log.seek(0, 2)
    while at:
        at, upto = max(0, at - _PART_BYTES), at
        log.seek(at)
        found = [match.start() for match in re.finditer(b"\n", log.read(upto - at))]
        yield from (at + each for each in reversed(found))


def _show_from(path: Path, start: int, service: str, widest: int) -> int:
    """The same; of a line that does not end, so much as is read at once is one."""
    data, start = _read(path, start)
    whole, newline, rest = data.rpartition(b"\n")
    if not newline and len(rest) == _STEP_BYTES:
        whole = rest
    if whole or newline:
        _show(whole.split(b"\n"), service, widest)
    return start + len(whole) + len(newline)


def _read(path: Path, start: int) -> tuple[bytes, int]:
    """A part that is not too large, and where it begins; its end, where it has become shorter."""
    if is_lost(path):  # meanwhile; a pipe would be waited for
        return b"", start
    try:
        with path.open("rb") as log:
            at = min(start, log.seek(0, 2))
            log.seek(at)
            return log.read(_STEP_BYTES), at
    except FileNotFoundError:  # it has not been started yet
        return b"", start


def _show(lines: list[bytes], service: str, widest: int) -> None:
    for line in lines:
        text = "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in _decoded(line))
        write_result(f"{service:<{widest}} | {text}" if widest else text)
    sys.stdout.flush()


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")
