"""Ray Serve LLM for real, on the CPU. ``make test-heavy-ray``; skipped where WITHSTAND_RAY names no interpreter."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from withstand.errors import EngineError
from withstand.processes.identity import Identity, children_of, end, identity_of, marked
from withstand.spec.stack import stack_from_file, stack_of
from withstand.stack.local import bring_up
from withstand.stack.ports import free_port, listener_on
from withstand.stack.standing import Standing, standing_of
from withstand.stack.state import MARK
from withstand.stack.supervision import Phase
from withstand.stack.taking_down import take_down

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
def up(told: dict[str, Any] | Path) -> Iterator[Standing]:
    """Up inside, and then nothing is left."""
    stack = stack_from_file(told) if isinstance(told, Path) else stack_of(told, "heavy")
    standing = bring_up(stack, lambda *_: None, lambda _: None)
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


class Cluster(NamedTuple):
    """Somebody's: a head that has no cores, and a node that has them."""

    address: str
    head: Identity
    worker: Identity

    def called(self, title: str) -> list[Identity]:
        return called([*below(self.head), *below(self.worker)], title)


@contextmanager
def node(token: str, *told: str) -> Iterator[Identity]:
    """One node, until it is killed."""
    more = ["--block", "--disable-usage-stats", f"--object-store-memory={200 << 20}"]
    more += [f"--dashboard-agent-listen-port={free_port()}"]
    env = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        argv = [str(Path(PYTHON or "").with_name("ray")), "start", *more, *told, f"--temp-dir={folder}"]
        with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, start_new_session=True) as process:
            started = identity_of(process.pid)
            assert started
            try:
                until(lambda: called(below(started), "raylet"))
                yield started
            finally:
                end([started, *below(started)], 0.0)


@contextmanager
def cluster(token: str) -> Iterator[Cluster]:
    """One that is there already, and lets in nobody without the token."""
    ports = {name: free_port() for name in ("port", "ray-client-server-port")}
    told = [*(f"--{name}={n}" for name, n in ports.items()), "--node-ip-address=127.0.0.1", "--num-cpus=0"]
    address = f"127.0.0.1:{ports['port']}"
    with node(token, "--head", "--include-dashboard=false", *told) as head:
        until(lambda: listener_on(ports["port"]))
        with node(token, f"--address={address}", "--node-ip-address=127.0.0.2", "--num-cpus=64") as worker:
            yield Cluster(address, head, worker)


def refused(tree: dict[str, Any], words: str) -> None:
    """It does not come up, soon, by one sentence; and is gone."""
    began_s = time.monotonic()
    with pytest.raises(EngineError, match=words) as failed:
        bring_up(stack_of(tree, "heavy"), lambda *_: None, lambda _: None)
    assert "Traceback" not in str(failed.value)
    assert time.monotonic() - began_s < 120
    standing = standing_of("heavy")
    assert standing
    assert take_down(standing) == []


def failed_words(standing: Standing) -> str:
    now = standing_of(standing.name)
    assert now
    [unit] = now.state.units
    return unit.reason if unit.phase is Phase.FAILED else ""


def test_several_models_behind_rays_door_and_ours(tmp_path: Path) -> None:
    models = ("first", "second")
    tree = on_ray({name: vllm(served_as=name) for name in models}, gateway={})
    tree["plan"] = {
        "targets": {"ray": {"service": "second"}, "gateway": {"service": "gateway", "model": "second"}},
        "workload": {"dataset": "random", "num_prompts": 24, "options": {"input_len": 64, "output_len": 16}},
        "stages": [{"max_concurrency": 2}],
    }
    file = tmp_path / "heavy.json"
    file.write_text(json.dumps(tree))
    with up(file) as standing:
        ray, gateway = standing.blueprint.processes
        for url in (ray.base_url, gateway.base_url):
            for model in models:
                _, events = streamed(url, model)
                assert {event["model"] for event in events} == {model}
                assert len(events) >= 8
            with pytest.raises(urllib.error.HTTPError, match="404"):
                streamed(url, "third")
        argv = [sys.executable, "-m", "withstand", "run", str(file), "--output-dir", "r", "--quiet"]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode in {0, 3}, done.stdout + done.stderr
        for name in ("ray", "gateway"):
            [stage] = json.loads((tmp_path / "r" / name / "summary.json").read_text())["stages"]
            assert stage["completed"] == 24
            assert "vLLM" in stage["server"]["engines"]
            assert stage["server"]["answered"] >= 6, (
                "Ray tells counts late, a busy one by seconds: not those of the end"
            )


def test_prefill_and_decode_apart_move_the_cache(tmp_path: Path) -> None:
    nixl = {"UCX_TLS": "tcp,self,sm", "UCX_NET_DEVICES": "lo", "OMP_NUM_THREADS": "1"}
    roles = {
        role: vllm(role=role, served_as="m", room={"cpus": [core]}, env=nixl)
        for core, role in enumerate(("prefill", "decode"))
    }
    with up(on_ray(roles)) as standing:
        _, events = streamed(standing.blueprint.door, "m", PROMPT)
        assert len(events) >= 8
        until(lambda: metrics_of(standing).get("vllm:nixl_xfer_time_seconds_count"))
        said = metrics_of(standing)
        assert said["vllm:external_prefix_cache_hits_total"] > 100


def test_who_is_no_cluster_is_told_of_by_its_address() -> None:
    tree = on_ray({"small": vllm()}, ray={"address": f"127.0.0.1:{free_port()}"})
    refused(tree, r"No Ray answers at 127\.0\.0\.1:\d+ .* correct address in \[ray\]")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        tree["ray"]["address"] = f"127.0.0.1:{deaf.getsockname()[1]}"
        refused(tree, r"No Ray answers at 127\.0\.0\.1:\d+ .* correct address in \[ray\]")


def test_on_somebodys_cluster_it_rests_wakes_and_goes_and_the_cluster_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    token = secrets.token_hex(32)
    with cluster(token) as there:
        tree = on_ray({"small": vllm(deploy={"min_replicas": 0, "idle_s": 1})}, ray={"address": there.address})
        refused(tree, r"wants its token; say where it is: token = .* in \[ray\]")
        tree["ray"]["token"] = {"from_env": "THEIR_TOKEN"}
        monkeypatch.setenv("THEIR_TOKEN", secrets.token_hex(32))
        refused(tree, r"has another token than the one shown; correct it: token = .* in \[ray\]")
        monkeypatch.setenv("THEIR_TOKEN", token)
        with up(tree) as standing:
            assert called(below(standing.state.supervisor), token) == []
            assert there.called("EngineCore") == []
            cold_s, events = streamed(standing.blueprint.door, standing.blueprint.model)
            assert len(events) >= 8
            assert called(below(there.worker), "EngineCore")
            warm_s, _ = streamed(standing.blueprint.door, standing.blueprint.model)
            assert warm_s < cold_s
            until(lambda: metrics_of(standing).get("vllm:generation_tokens_total", 0) >= 16)
            until(lambda: not there.called("EngineCore"))
        assert there.called("ServeReplica") == []
        with up(tree) as standing:
            [ray] = [unit.leader for unit in standing.state.units]
            assert ray
            os.kill(ray.pid, signal.SIGKILL)
            until(lambda: not ray.is_alive)
        assert there.called("ServeReplica") == []
        assert there.head.is_alive
        assert there.worker.is_alive
        assert len(there.called("raylet")) >= 2
        with up(tree) as standing:
            end([there.worker, *below(there.worker)], 0.0)
            with pytest.raises(OSError, match=r"refused|reset|closed|HTTP Error|Remote end"):
                streamed(standing.blueprint.door, standing.blueprint.model)
            until(lambda: failed_words(standing))
            assert "127.0.0.2 is dead, and no other has room for what it ran" in failed_words(standing)
        assert there.called("ServeReplica") == []
        assert there.head.is_alive
