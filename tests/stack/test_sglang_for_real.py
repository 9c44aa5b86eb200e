"""SGLang on the CPU for real. ``make test-heavy``; skipped where WITHSTAND_SGLANG names no interpreter."""

import json
import os
import signal
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from withstand.processes.identity import Identity, children_of
from withstand.record import Seen
from withstand.spec.stack import Stack, stack_of
from withstand.stack.flags import checked
from withstand.stack.local import bring_up, planned
from withstand.stack.standing import Standing, standing_of
from withstand.stack.taking_down import take_down
from withstand.wire.engine_metrics import read_engine

PYTHON = os.environ.get("WITHSTAND_SGLANG")
EXAMPLE = Path(__file__).parents[2] / "examples" / "vllm-vs-sglang-cpu.toml"
pytestmark = pytest.mark.skipif(not PYTHON, reason="WITHSTAND_SGLANG names no environment with SGLang")


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path))
    told = tomllib.loads(EXAMPLE.read_text("utf-8"))["engines"]["sglang"]
    yield stack_of({"engines": {"sglang": {**told, "python": PYTHON}}}, "heavy")
    if standing := standing_of("heavy"):
        assert take_down(standing) == []


def up(stack: Stack) -> Standing:
    return bring_up(stack, lambda *_: None, lambda _: None)


def everybody(standing: Standing) -> list[Identity]:
    found, new = list[Identity](), [standing.state.supervisor]
    while new:
        found += new
        new = [child for parent in new for child in children_of(parent.pid)]
    return found


def answer_of(url: str, body: dict[str, Any] | None = None) -> str:
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        return str(answer.read().decode())


def test_it_knows_its_options_answers_and_tells_its_metrics(stack: Stack) -> None:
    assert not any(one.unknown for one in checked(planned(stack).processes, {}))
    standing = up(stack)
    alive, door = everybody(standing), standing.blueprint.door
    body = {"model": standing.blueprint.model, "prompt": "The capital of France is", "max_tokens": 4, "temperature": 0}
    answer = json.loads(answer_of(f"{door}/v1/completions", body))
    assert answer["choices"][0]["text"].startswith(" Paris")
    assert answer["usage"]["completion_tokens"] == 4
    engine, values = read_engine(answer_of(f"{door}/metrics"))
    assert engine == "SGLang"
    assert values[Seen.RUNNING] == values[Seen.WAITING] == 0
    assert {Seen.ANSWERED, Seen.TTFT_S, Seen.QUEUE_S, Seen.PREFILL_S, Seen.KV_SHARE} <= set(values)
    assert take_down(standing) == []
    assert not any(one.is_alive for one in alive)
    assert not any(Path(path).exists() for path in standing.state.shared)


def test_its_supervisor_is_killed_and_nothing_is_left(stack: Stack) -> None:
    standing = up(stack)
    alive = everybody(standing)
    assert len(alive) > 4  # supervisor, keeper, server, scheduler, detokenizer
    os.kill(standing.state.supervisor.pid, signal.SIGKILL)
    give_up_s = time.monotonic() + 120
    while any(one.is_alive for one in alive):
        assert time.monotonic() < give_up_s
        time.sleep(0.1)
    now = standing_of("heavy")
    assert now
    assert take_down(now) == []
    assert not any(Path(path).exists() for path in standing.state.shared)
