"""Requests that are no text, and sessions that cannot be had: an error in OpenAI's form, counted as what it is."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from scripted import Agent, Scripted, said, wait_for

Model = Callable[..., Scripted]
MakeAgent = Callable[..., Agent]


def test_requests_that_are_no_text(model: Model, agent: MakeAgent) -> None:
    running = agent(model(said("x")).url)
    body = b'{"model":"agent","messages":[{"role":"user","content":"\xff"}]}'
    got = running.send("/v1/chat/completions", body)
    assert (got.status, got.json["error"]["type"]) == (400, "invalid_request_error")
    for name in ("x-session-id", "authorization", "x-request-id"):
        for stream in (True, False):
            got = running.ask("?", headers={name: "\xe9\xff"}, stream=stream)
            assert got.status == 400
            assert f"`{name}`" in got.json["error"]["message"]
    wait_for(lambda: running.metric('requests_total{outcome="refused"}') == 7)


def test_a_session_that_is_locked(model: Model, agent: MakeAgent, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    running = agent(model(said("Hello.")).url, sessions={"path": str(path)})
    mine = {"x-session-id": "s"}
    assert running.ask("?", headers=mine).text == "Hello."
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    got = running.ask("?", headers=mine, stream=False)
    assert (got.status, got.json["error"]["code"]) == (503, "sessions_failed")
    wait_for(lambda: running.metric('requests_total{outcome="failed"}') == 1)
    other.close()
    assert running.ask("?", headers=mine).text == "Hello."


def _spoil(path: Path) -> None:
    """All pages but the first."""
    with path.open("r+b") as file:
        size = path.stat().st_size
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


@pytest.mark.parametrize("stream", [True, False])
def test_a_session_that_is_damaged(model: Model, agent: MakeAgent, tmp_path: Path, stream: bool) -> None:
    """While it runs as an answer, and before it starts as a reason not to."""
    path = tmp_path / "sessions.db"
    kept = {"sessions": {"path": str(path)}}
    url = model(said("Hello.")).url
    running = agent(url, **kept)
    assert running.ask("?", headers={"x-session-id": "s"}).text == "Hello."
    with sqlite3.connect(path) as other:
        other.execute("UPDATE checkpoints SET checkpoint = x'a5'")
    other.close()
    got = running.ask("?", headers={"x-session-id": "s"}, stream=stream)
    assert (got.status, got.json["error"]["code"]) == (503, "sessions_failed")
    wait_for(lambda: running.metric('requests_total{outcome="failed"}') == 1)
    assert not running.stop()
    _spoil(path)
    with pytest.raises(AssertionError, match=r"sessions\.path: .* is damaged|sessions\.path: .* cannot be opened"):
        agent(url, **kept)
