"""Engines that the gateway starts and stops: in its configuration, and no services of the stack."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from withstand.errors import SpecError
from withstand.spec.stack import stack_of
from withstand.stack.blueprint import Blueprint, Place
from withstand.stack.composed import composed
from withstand.stack.resting import with_resting

PORTS = {name: 9000 + i for i, name in enumerate(("small", "big", "gateway", "gateway-2"))}
PLACE = Place(folder=Path("/stacks/s"), python="/ours/python", ports=PORTS, threads=4, small_model=Path("/m.gguf"))
RESTS = {"deploy": {"min_replicas": 0, "idle_s": 7}}
SMALL = {"kind": "llamacpp", "served_as": "m", "ready_s": 50, "stop_s": 3}
EXAMPLE = Path(__file__).parents[2] / "examples" / "cold.toml"


def of(engines: dict[str, Any], **more: Any) -> Blueprint:
    return with_resting(composed(stack_of({"engines": engines, **more}, "s"), PLACE), PLACE)


def config_of(blueprint: Blueprint) -> dict[str, Any]:
    (gateway,) = (process for process in blueprint.processes if process.name == "gateway")
    return msgspec.json.decode(gateway.files["gateway.json"])


def test_the_gateway_has_the_command_and_the_stack_one_service_less() -> None:
    blueprint = of({"small": SMALL | RESTS, "big": SMALL}, gateway={})
    assert [process.name for process in blueprint.processes] == ["big", "gateway"]
    assert blueprint.processes[1].needs == ("big",)
    config = config_of(blueprint)
    resting, always = config["models"]["m"]["engines"]
    assert always == {"url": "http://127.0.0.1:9001"}
    assert resting["command"][:4] == ["/ours/python", "-P", "-m", "withstand.stack.llamacpp_server"]
    assert resting["url"] == "http://127.0.0.1:9000"
    told = {key: resting[key] for key in ("ready", "start_timeout_s", "idle_s", "stop_s", "log")}
    assert told == {
        "ready": "/health",
        "start_timeout_s": 50,
        "idle_s": 7,
        "stop_s": 3,
        "log": "/stacks/s/logs/small.log",
    }
    assert config["host"] == {"state": "/stacks/s/hosted"}


def test_with_a_replica_at_least_nothing_changes() -> None:
    plain = composed(stack_of({"engines": {"small": SMALL}, "gateway": {}}, "s"), PLACE)
    assert with_resting(plain, PLACE) == plain


def test_without_a_gateway_nobody_would_start_it() -> None:
    with pytest.raises(SpecError, match=r"add \[gateway\] - at `\$\.engines\.small\.deploy\.min_replicas`"):
        of({"small": SMALL | RESTS})


@pytest.mark.parametrize(
    ("engine", "gateway", "at"),
    [
        ({}, {"copies": 2}, "$.gateway.copies"),
        ({"room": {"cpus": [0]}}, {}, "$.engines.small.room"),
        ({"env": {"KEY": {"from_env": "KEY"}}}, {}, "$.engines.small.env"),
    ],
)
def test_what_does_not_go_with_it_is_refused(engine: dict[str, Any], gateway: dict[str, Any], at: str) -> None:
    with pytest.raises(SpecError) as e:
        of({"small": SMALL | RESTS | engine}, gateway=gateway)
    assert at in str(e.value)


@pytest.mark.engine
@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("xllamacpp", "fastapi")), reason="extras are not installed"
)
def test_cold_answers_of_a_real_engine_behind_a_gateway_that_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path / "state"))
    stack = EXAMPLE.read_text().replace("idle_s = 4", "idle_s = 1")
    assert "idle_s = 1" in stack
    (tmp_path / "cold.toml").write_text(stack)
    few = ("--set", "cycles=2", "--set", "stages.2.num_prompts=2")
    few += ("--set", "workload.options.input_len=8", "--set", "workload.options.output_len=2")
    command = [sys.executable, "-m", "withstand", "run", "cold.toml", "--plan", "cold-start", *few]
    done = subprocess.run(
        [*command, "--output-dir", "r", "--price-per-hour", "2.5"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    summary = json.loads((tmp_path / "r" / "summary.json").read_text()) if (tmp_path / "r").exists() else {}
    cold = summary.get("cold_start")
    assert cold, done.stdout + done.stderr
    assert (cold["by"], cold["cold_started"], cold["warm_started"]) == ("gateway", 2, 0)
    assert cold["cold"]["mean"] > cold["start_mean"] / 2 > 0
    assert cold["extra"] > 0
    assert summary["economy"]["cold_start_s"] == pytest.approx(cold["extra"] / 1000)
    told = " ".join(done.stdout.split())
    assert "cold start (the gateway had stopped the engine)" in told
    assert "kept warm while nobody asks, it costs 2.5 an hour" in told
    assert not list((tmp_path / "state").glob("stacks/*"))
