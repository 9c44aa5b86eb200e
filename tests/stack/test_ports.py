"""A port is free when we take it, or the user hears that it is not."""

import socket
from pathlib import Path

import pytest

from withstand.errors import EngineError
from withstand.stack.ports import HOST, free_port


def test_any_free_port_can_be_listened_on() -> None:
    with socket.socket() as listener:
        listener.bind((HOST, free_port()))


def test_a_free_port_is_given_to_no_connection() -> None:
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    if low < 30_000:
        pytest.skip("the kernel's own ports are ours here")
    assert all(not low <= free_port() <= high for _ in range(50))


def test_a_free_port_is_none_of_these(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("withstand.stack.ports._OURS", range(20_000, 20_100))
    besides = set(range(20_000, 20_099))
    assert free_port(besides=besides) not in besides


def test_a_free_port_that_was_asked_for_is_given(port: int) -> None:
    assert free_port(port) == port


def test_a_busy_port_is_said(port: int) -> None:
    with (
        socket.create_server((HOST, port)),
        pytest.raises(EngineError, match=rf"^Port {port} of .* is in use by .+;"),
    ):
        free_port(port)
