"""The access log: whoever is to take it may be slow, or gone, and requests are served all the same."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import msgspec
import pytest

from engines import Behave, Engine, answering
from gateways import Gateway, body, model, post
from withstand.gateway.scribe import Scribe

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]
PIPE_BYTES = 4096
LINES = 100
"""More than the pipe holds."""
FLUSHED_S = 0.7


@pytest.fixture
def pipe(tmp_path: Path) -> tuple[Path, int]:
    """Opened to be read, and not read."""
    fcntl = pytest.importorskip("fcntl", reason="pipes are made smaller by fcntl")
    if not hasattr(fcntl, "F_SETPIPE_SZ"):
        pytest.skip("only Linux makes pipes smaller")
    path = tmp_path / "log"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return path, reader


def asked_often(gw: Gateway) -> list[int]:
    client = gw.client()
    return [client.send(post(body())).answer().status for _ in range(LINES)]


def with_log(engine: Engines, path: Path) -> str:
    return f'{model(engine(answering()).url)}[log]\npath = "{path}"\n'


def test_a_log_that_nobody_reads_keeps_no_request_waiting(
    engine: Engines, gateway: Gateways, pipe: tuple[Path, int]
) -> None:
    path, reader = pipe
    gw = gateway(with_log(engine, path))
    for _ in range(2):
        assert set(asked_often(gw)) == {200}
        time.sleep(FLUSHED_S)
    os.set_blocking(reader, True)
    read, lines = b"", 0
    while lines < 2 * LINES:
        read += os.read(reader, 1 << 16)
        lines = read.count(b"\n")
    assert {msgspec.json.decode(line)["status"] for line in read.splitlines()} == {200}
    assert gw.stop() == ""
    os.close(reader)


def test_a_gateway_ends_though_nobody_reads_its_log(engine: Engines, gateway: Gateways, pipe: tuple[Path, int]) -> None:
    path, reader = pipe
    gw = gateway(with_log(engine, path))
    assert set(asked_often(gw)) == {200}
    assert gw.stop() == ""
    os.close(reader)


def test_a_log_whose_reader_has_left_is_no_trouble(engine: Engines, gateway: Gateways, pipe: tuple[Path, int]) -> None:
    path, reader = pipe
    gw = gateway(with_log(engine, path))
    os.close(reader)
    for _ in range(2):
        assert set(asked_often(gw)) == {200}
        time.sleep(FLUSHED_S)
    assert gw.stop() == ""


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", never)


@pytest.mark.usefixtures("no_threads")
def test_where_there_may_be_no_thread_the_log_is_written_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "log"
    scribe = Scribe(os.open(path, os.O_WRONLY | os.O_CREAT))
    scribe.write(b"a\n")
    scribe.write(b"b\n")
    scribe.close()
    scribe.join(1.0)
    assert path.read_bytes() == b"a\nb\n"


@pytest.mark.usefixtures("no_threads")
def test_where_there_may_be_no_thread_nobody_waits_for_who_reads_the_log() -> None:
    reader, writer = os.pipe()
    scribe = Scribe(writer)
    for _ in range(100):
        scribe.write(b"x" * 5000 + b"\n")  # more than a pipe holds
    scribe.close()
    assert os.read(reader, 10) == b"x" * 10
    os.close(reader)
