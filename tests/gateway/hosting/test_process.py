"""One command's life, with a real process."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec
import pytest

from hosted import Hosted, runs, until
from withstand.gateway.address import origin_of
from withstand.gateway.hosting import child, config
from withstand.gateway.hosting.host import state_folder
from withstand.gateway.hosting.orphans import Record, end_orphans
from withstand.gateway.hosting.process import Place, Process, State
from withstand.processes.cut import cut
from withstand.processes.identity import Identity, boot, identity_of
from withstand.stack.ports import free_port

Places = Callable[[], Place]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes by /proc")


def made(engine: Hosted, **more: object) -> Process:
    told = {"stop_s": 1.0, **more}
    return Process(origin_of(engine.url), config.Hosted(command=engine.command, **told))  # type: ignore[arg-type]


async def until_true(true: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110  a process tells nobody
            await asyncio.sleep(0.01)


async def until_state(process: Process, *states: State) -> None:
    await until_true(lambda: process.state in states)


def test_it_comes_up_when_it_is_ready_and_goes_when_told(tmp_path: Path, place: Places, told: object) -> None:
    engine = Hosted(tmp_path / "e")
    engine.tell("cold")

    async def live() -> Path:
        process = made(engine)
        assert not process.is_open
        process.start(here := place(), asked_ns=1)
        await until_true(lambda: engine.pids)
        assert process.state is State.STARTING
        assert not process.is_open
        engine.untell("cold")
        await until_state(process, State.UP)
        assert process.is_open
        assert len(list(here.folder.glob("*.json"))) == 1
        process.stop()
        assert not process.is_open
        await process.gone()
        assert process.state is State.COLD
        assert process.failure is None
        assert not list(here.folder.glob("*.json"))
        process.start(here, asked_ns=2)
        await until_state(process, State.UP)
        process.stop()
        await process.gone()
        return here.folder

    [log] = asyncio.run(live()).glob("*.log")
    noted = [line.partition("] ")[2] for line in log.read_text().splitlines() if line.startswith("[withstand ")]
    assert noted == [f"{log.stem} starts, for somebody asks for it", f"{log.stem} has ended, as the gateway wanted"]
    assert len(engine.pids) == 2
    assert not any(map(runs, engine.pids))
    assert [name for name, cold_ns in told.started if cold_ns > 0] == [engine.name] * 2  # type: ignore[attr-defined]


def test_logs_and_records_follow_the_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    monkeypatch.delenv("WITHSTAND_STATE", raising=False)
    assert state_folder(config.HostConfig()) == Path("/xdg/withstand/engines")
    monkeypatch.setenv("WITHSTAND_STATE", "/ours")
    assert state_folder(config.HostConfig()) == Path("/ours/engines")
    assert state_folder(config.HostConfig(state="/told")) == Path("/told")


@pytest.mark.parametrize(
    ("how", "more", "said"),
    [
        (("refuse",), {"env": {"ENGINE_KEY": "tell-nobody"}}, r"its start \(exit code 1\): error: .* was \*\*\*\."),
        (("never",), {"start_timeout_s": 0.3}, r"0\.3 s \(GET /health at its url .* by 2xx\), and said nothing\."),
        ((), {"cwd": "/no/such/folder"}, r"cannot be started: .*No such file"),
        ((), {"log": "/no/such/folder/log"}, r"cannot be started: /no.*: (No such file|Permission|Read-only)"),
    ],
)  # fmt: skip
def test_a_start_that_fails_is_told(
    tmp_path: Path, place: Places, how: tuple[str, ...], more: dict[str, object], said: str
) -> None:
    if os.geteuid() == 0 and "log" in more:
        more = {"log": "/proc/none/log"}
        said = r"cannot be started: /proc/none.*: No such file"
    engine = Hosted(tmp_path / "e", *how)

    async def live() -> Process:
        process = made(engine, **more)
        process.start(place(), asked_ns=1)
        await process.gone()
        return process

    process = asyncio.run(live())
    assert process.failure is not None
    assert process.backoff.left_s(0.0) > 0
    assert re.search(said, process.failure), process.failure
    engine.until_gone()


_FLOOD = (
    "i=0; while [ $i -lt 5000 ]; do echo line $i of very many; i=$((i+1)); done; while :; do echo on; sleep 0.05; done"
)


@pytest.mark.parametrize("replaced", [False, True])
def test_its_log_has_a_bound(tmp_path: Path, place: Places, monkeypatch: pytest.MonkeyPatch, *, replaced: bool) -> None:
    """Of the file that it writes to; what stands under its name by now is nobody's to cut."""
    monkeypatch.setattr(child, "_LOOK_S", 0.02)
    monkeypatch.setattr(child, "cut", partial(cut, bytes_max=50_000, kept_bytes=10_000))
    log, other = tmp_path / "log", tmp_path / "other"
    log.write_bytes(b"older\n")
    other.write_bytes(b"x" * 100_000)

    async def live() -> None:
        told = config.Hosted(command=("sh", "-c", _FLOOD), log=str(log), stop_s=1.0)
        process = Process(origin_of(f"http://127.0.0.1:{free_port()}"), told)
        process.start(place(), asked_ns=1)
        await until_true(lambda: log.read_bytes() != b"older\n")
        with log.open("rb") as kept:
            if replaced:
                log.unlink()
                log.symlink_to(other)
            await until_true(lambda: _is_cut(_read(kept)))
        process.stop()
        await process.gone()

    asyncio.run(live())
    assert other.read_bytes() == b"x" * 100_000


def _is_cut(said: bytes) -> bool:
    """A line of the flood may come in the moment between the cut and its note, and so stand before that."""
    return len(said) <= 50_000 and re.search(rb"\[withstand has cut .*\non\n\Z", said, re.DOTALL) is not None


def _read(log: BinaryIO) -> bytes:
    return os.pread(log.fileno(), 100_000, 0)


@pytest.mark.parametrize(("said", "kept"), [(b"x" * 9000, b"x" * 100), (b"x" * 8999 + b"\n", b"x" * 99 + b"\n"),
                                            (b"line\n" * 1800, b"line\n" * 19)])  # fmt: skip
def test_of_a_log_the_last_is_kept_also_where_its_line_has_no_end(tmp_path: Path, said: bytes, kept: bytes) -> None:
    path = tmp_path / "log"
    with path.open("a+b", buffering=0) as log:
        log.write(said)
        cut(log.fileno(), 9000, 99 if kept.startswith(b"line") else 100)
        assert path.read_bytes() == said, "it is not too long"
        cut(log.fileno(), 8000, 99 if kept.startswith(b"line") else 100)
        log.write(b"on\n")
    assert path.read_bytes() == b"[withstand has cut %d bytes before this]\n" % (9000 - len(kept)) + kept + b"on\n"


@pytest.mark.parametrize(("url", "command"), [("http://a..b:9", "x"), ("http://127.0.0.1:9", "a\0b")])
def test_what_cannot_even_be_tried_is_told_as_well(place: Places, url: str, command: str) -> None:
    async def live() -> Process:
        process = Process(origin_of(url), config.Hosted(command=(command,)))
        process.start(place(), asked_ns=1)
        await process.gone()
        return process

    process = asyncio.run(live())
    assert "cannot be started" in (process.failure or "")
    assert process.backoff.left_s(0.0) > 0


def test_one_that_ends_by_itself_is_cold_again(tmp_path: Path, place: Places) -> None:
    engine = Hosted(tmp_path / "e")

    async def live() -> Process:
        process = made(engine)
        process.start(place(), asked_ns=1)
        await until_state(process, State.UP)
        os.kill(engine.pids[0], signal.SIGKILL)
        await until_state(process, State.COLD)
        return process

    process = asyncio.run(live())
    assert process.failure == f"The engine {engine.name} ended by itself (killed by SIGKILL, perhaps for want of memory), and said nothing."  # fmt: skip  # noqa: E501


def test_a_port_that_is_taken_starts_nothing(tmp_path: Path, place: Places) -> None:
    engine = Hosted(tmp_path / "e")

    async def live() -> Process:
        with socket.create_server(("127.0.0.1", engine.port)):
            process = made(engine)
            process.start(place(), asked_ns=1)
            await process.gone()
        return process

    process = asyncio.run(live())
    assert "Something listens" in (process.failure or "")
    assert not engine.pids


KEEPS = """
import asyncio, pathlib, sys
from withstand.gateway.address import origin_of
from withstand.gateway.hosting import config
from withstand.gateway.hosting.process import Place, Process, State
url, folder, *command = sys.argv[1:]
async def main():
    loop = asyncio.get_running_loop()
    cleared = loop.create_future()
    cleared.set_result(None)
    process = Process(origin_of(url), config.Hosted(command=tuple(command), stop_s=1))
    process.start(Place(pathlib.Path(folder), cleared, loop.time, lambda: None, lambda *_: None), 1)
    while process.state is not State.UP:
        await asyncio.sleep(0.01)
    print("up", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.parametrize("keeper_too", [False, True])
def test_nothing_outlives_a_killed_gateway(tmp_path: Path, keeper_too: bool) -> None:
    engine, state = Hosted(tmp_path / "e", "forks"), tmp_path / "state"
    state.mkdir()
    command = [sys.executable, "-c", KEEPS, engine.url, str(state), *engine.command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gateway:
        assert gateway.stdout is not None
        assert gateway.stdout.readline() == "up\n"
        apart = int((engine.folder / "apart").read_text())
        keeper = int(Path(f"/proc/{engine.pids[0]}/stat").read_text().rpartition(")")[2].split()[1])
        gateway.kill()
        if keeper_too:
            os.kill(keeper, signal.SIGKILL)
    engine.until_gone()
    if keeper_too:
        assert runs(apart), "nobody is left to end it"
        asyncio.run(end_orphans(state))
    until(lambda: not runs(apart), "what it started is gone too")
    asyncio.run(end_orphans(state))
    assert not list(state.glob("*.json"))


def test_a_process_that_only_has_the_number_of_another_is_left_alone(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "600"])
    try:
        here = identity_of(other.pid)
        start = boot()
        assert here is not None
        assert start
        record = Record(start, Identity(1 << 30, "1"), Identity(here.pid, str(int(here.started) - 1)), "none", 0.0)
        (tmp_path / "none.json").write_bytes(msgspec.json.encode(record))
        (tmp_path / "half.json").write_bytes(msgspec.json.encode(record)[:20])
        asyncio.run(end_orphans(tmp_path))
        assert not list(tmp_path.glob("*.json"))
        assert runs(other.pid)
    finally:
        other.kill()
        other.wait()
