"""Ray Serve LLM for real, on the CPU. ``make test-heavy-ray``; skipped where WITHSTAND_RAY names no interpreter."""

import json
import os
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from withstand.processes.identity import marked
from withstand.spec.stack import stack_of
from withstand.stack.local import bring_up, take_down
from withstand.stack.ports import listener_on
from withstand.stack.state import MARK

PYTHON = os.environ.get("WITHSTAND_RAY")
pytestmark = pytest.mark.skipif(not PYTHON, reason="WITHSTAND_RAY names no environment with ray[serve] and vLLM")


def test_what_is_ready_streams_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path))
    engine: dict[str, Any] = {
        "kind": "vllm",
        "context": 2048,
        "max_sequences": 8,
        "kv_cache_gb": 1,
        "args": ["--enforce-eager"],
        "env": {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"},
    }
    tree = {"runner": "ray", "ray": {"python": PYTHON}, "engines": {"small": engine}, "gateway": {}}
    standing = bring_up(stack_of(tree, "heavy"), lambda *_: None, lambda _: None)
    try:
        body = {"model": standing.blueprint.model, "prompt": "The mill", "max_tokens": 8, "stream": True}
        request = urllib.request.Request(
            f"{standing.blueprint.door}/v1/completions",
            json.dumps(body | {"ignore_eos": True}).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            events = [line for line in answer if line.startswith(b"data: {")]
        assert len(events) >= body["max_tokens"]
    finally:
        assert take_down(standing) == []
    assert marked(MARK, standing.state.mark) == []
    for process in standing.blueprint.processes:
        assert listener_on(process.port) is None
        assert not any(Path(folder).exists() for folder in process.scratch)
