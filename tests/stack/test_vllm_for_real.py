"""vLLM for real, prefill and decode apart. ``make test-heavy``; skipped where WITHSTAND_VLLM names no interpreter."""

import json
import os
import tomllib
import urllib.request
from pathlib import Path

import pytest

from withstand.spec.stack import stack_of
from withstand.stack.flags import checked
from withstand.stack.local import bring_up, planned
from withstand.stack.taking_down import take_down

PYTHON = os.environ.get("WITHSTAND_VLLM")
EXAMPLE = Path(__file__).parents[2] / "examples" / "prefill-decode.toml"
pytestmark = pytest.mark.skipif(not PYTHON, reason="WITHSTAND_VLLM names no environment with vLLM")


def test_the_cache_goes_from_prefill_to_decode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path))
    tree = tomllib.loads(EXAMPLE.read_text("utf-8"))
    for engine in tree["engines"].values():
        engine["python"] = PYTHON
    stack = stack_of(tree, "heavy")
    assert not any(one.unknown for one in checked(planned(stack).processes, {}))
    standing = bring_up(stack, lambda *_: None, lambda _: None)
    try:
        prompt = "The river ran past the mill and the miller counted his sacks of flour. " * 14
        body = {"model": standing.blueprint.model, "prompt": prompt, "max_tokens": 8}
        request = urllib.request.Request(
            f"{standing.blueprint.door}/v1/completions",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            assert "none" not in answer.headers["x-withstand-prefill"]
            prompt_tokens = json.load(answer)["usage"]["prompt_tokens"]
        decode = next(one for one in standing.blueprint.processes if one.name == "decode")
        with urllib.request.urlopen(f"{decode.base_url}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        hits = [line for line in lines if line.startswith("vllm:external_prefix_cache_hits_total")]
        assert float(hits[0].split()[-1]) > prompt_tokens / 2
    finally:
        assert take_down(standing) == []
