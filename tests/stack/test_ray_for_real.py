"""Ray Serve LLM for real, on the CPU. ``make test-heavy-ray``; skipped where WITHSTAND_RAY names no interpreter."""

import json
import os
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from withstand.processes.identity import Identity, children_of, marked
from withstand.spec.stack import stack_of
from withstand.stack.local import Standing, bring_up, take_down
from withstand.stack.ports import listener_on
from withstand.stack.state import MARK

PYTHON = os.environ.get("WITHSTAND_RAY")
pytestmark = pytest.mark.skipif(not PYTHON, reason="WITHSTAND_RAY names no environment with ray[serve] and vLLM")
PROMPT = "The river ran past the mill and the miller counted his sacks of flour. " * 14


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path / "state"))
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)


def vllm(**more: Any) -> dict[str, Any]:
    args, env = ["--enforce-eager"], {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    told = {"kind": "vllm", "context": 2048, "max_sequences": 8, "kv_cache_gb": 1, "args": args}
    return told | more | {"env": env | more.get("env", {})}


def on_ray(engines: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"runner": "ray", "ray": {"python": PYTHON} | more.pop("ray", {}), "engines": engines, **more}


@contextmanager
def up(tree: dict[str, Any]) -> Iterator[Standing]:
    """Up inside, and then nothing is left."""
    standing = bring_up(stack_of(tree, "heavy"), lambda *_: None, lambda _: None)
    try:
        yield standing
    finally:
        assert take_down(standing) == []
    assert marked(MARK, standing.state.mark) == []
    for process in standing.blueprint.processes:
        assert listener_on(process.port) is None
        assert not any(Path(folder).exists() for folder in process.scratch)
    assert not standing.folder.exists()


def streamed(url: str, model: str, prompt: str = "The mill", tokens: int = 8) -> tuple[float, list[dict[str, Any]]]:
    """Seconds until the first event, and all of them."""
    body = {"model": model, "prompt": prompt, "max_tokens": tokens, "stream": True, "ignore_eos": True}
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/completions", json.dumps(body).encode(), headers)
    began, first, events = time.monotonic(), 0.0, []
    with urllib.request.urlopen(request, timeout=300) as answer:
        for line in answer:
            if line.startswith(b"data: {"):
                first = first or time.monotonic() - began
                events.append(json.loads(line[6:]))
    return first, events


def metrics_of(standing: Standing) -> dict[str, float]:
    """Sums over labels, by name."""
    [ray] = [process for process in standing.blueprint.processes if process.kind == "ray"]
    assert ray.metrics_url
    found: dict[str, float] = {}
    with urllib.request.urlopen(ray.metrics_url, timeout=60) as answer:
        for line in answer.read().decode().splitlines():
            name = line.partition("{")[0]
            found[name] = found.get(name, 0.0) + float(line.split()[-1])
    return found


def until(condition: Callable[[], object], within_s: float = 240.0) -> None:
    give_up_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < give_up_s
        time.sleep(0.2)


def below(root: Identity | None) -> list[Identity]:
    """All that it has started, however deep."""
    found = list[Identity]()
    new = children_of(root.pid) if root else []
    while new:
        found += new
        new = [child for parent in new for child in children_of(parent.pid)]
    return found


def called(identities: list[Identity], title: str) -> list[Identity]:
    """Those whose title has this in it."""
    found = []
    for one in identities:
        try:
            words = Path(f"/proc/{one.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if title.encode() in words:
            found.append(one)
    return found
