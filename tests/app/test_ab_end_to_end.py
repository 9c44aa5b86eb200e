"""Two sides in turn as a user measures them: told apart or not, cut and gone on with, refused where not alike."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cutting import wait_until
from outcomes import code
from withstand.runs import RunFolder, RunState
from withstand.stack.ports import free_port
from withstand.testing import Schedule, TruthServer

FAST = Schedule(ttft_ms=40, itl_ms=2, tokens=4)
SLOW = Schedule(ttft_ms=80, itl_ms=4, tokens=4)
"""Twice as long: by chance blocks on a busy machine differ by some 10 %, and six pairs must tell that apart."""
LOAD = ("--model", "truth", "--request-rate", "60", "--num-prompts", "40", "--input-len", "8", "--output-len", "4")
AB = (sys.executable, "-m", "withstand", "ab")
ORDER = ["a-01", "b-01", "b-02", "a-02", "b-03", "a-03", "a-04", "b-04"]


def ab(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*AB, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def of_urls(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return ab(*arguments, *LOAD, "--blocks", "4", "--output-dir", "r", cwd=cwd)


def blocks(parent: Path) -> list[str]:
    """By the time at which they began."""
    return [
        path.name for path in sorted(folders(parent), key=lambda path: RunFolder.open(path).manifest.anchor.wall_ns)
    ]


def folders(parent: Path) -> list[Path]:
    return [path for path in parent.iterdir() if RunFolder.is_one(path)]


def verdict(parent: Path, metric: str) -> str:
    comparison = json.loads((parent / "comparison.json").read_text())
    rows = {row["metric"]: row for row in comparison["groups"][0]["rows"]}
    return str(rows[metric]["differences"][1]["verdict"])


def bodies(server: TruthServer) -> list[str]:
    return [json.dumps(served.body["messages"]) for served in server.truth() if served.body]


def test_a_slower_side_is_found_in_pairs_whose_prompts_are_the_same(tmp_path: Path) -> None:
    with TruthServer(FAST, keep_bodies=True) as fast, TruthServer(SLOW, keep_bodies=True) as slow:
        sides = (f"old={fast.base_url}", f"new={slow.base_url}")
        done = ab(*sides, *LOAD, "--blocks", "6", "--output-dir", "r", cwd=tmp_path)
        assert sorted(bodies(fast)) == sorted(bodies(slow))
        assert len(set(bodies(fast))) == len(bodies(fast))
    parent = tmp_path / "r"
    assert code(done, parent) == 0, done.stderr
    assert "For 12 blocks (6 pairs): 12 stages and 12 warm-ups, at least 8 s" in done.stderr
    assert done.stderr.count("Salt ") == 1
    assert blocks(parent)[:8] == ORDER
    assert verdict(parent, "ttft.p50") == "worse"
    assert "new is worse than old" in " ".join(done.stdout.split())
    assert (parent / "comparison.html").exists()
    again = subprocess.run([*AB[:3], "compare", "r"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "Both sides were measured in turn" in " ".join(again.stdout.split())


def test_a_side_is_not_told_from_itself(tmp_path: Path) -> None:
    with TruthServer(FAST) as server:
        done = of_urls(server.base_url, server.base_url, "--json", "--quiet", cwd=tmp_path)
    assert code(done, tmp_path / "r") == 0, done.stderr
    comparison = json.loads(done.stdout)
    name = server.base_url.removeprefix("http://")
    assert [side["label"] for side in comparison["sides"]] == [f"{name} #1", f"{name} #2"]
    assert verdict(tmp_path / "r", "e2el.p50") not in {"better", "worse"}


@contextmanager
def begun(*arguments: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    err = subprocess.PIPE
    with subprocess.Popen([*AB, *arguments], cwd=cwd, stdout=subprocess.DEVNULL, stderr=err, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def is_measured(block: Path, stage: int) -> bool:
    """Whether its stage has begun."""
    try:
        stages = json.loads((block / "run.json").read_text())["stages"]
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return len(stages) > stage and stages[stage]["state"] == "running"


@pytest.mark.parametrize("block", ["a-01", "a-02", "b-03"])
def test_killed_in_a_block_and_resumed_all_pairs_are_whole(tmp_path: Path, block: str) -> None:
    with TruthServer(FAST) as fast, TruthServer(SLOW) as slow:
        sides = (f"old={fast.base_url}", f"new={slow.base_url}")
        with begun(*sides, *LOAD, "--blocks", "4", "--output-dir", "r", cwd=tmp_path):
            wait_until(lambda: is_measured(tmp_path / "r" / block, 1))
        kept = {path.name: RunFolder.open(path).manifest for path in folders(tmp_path / "r")}
        whole = [n for i in range(0, 8, 2) for n in ORDER[i : i + 2] if set(ORDER[i : i + 2]) <= kept.keys() - {block}]
        done = ab("--resume", "r", cwd=tmp_path)
    parent = tmp_path / "r"
    assert code(done, parent) == 0, done.stderr
    now = {path.name: RunFolder.open(path).manifest for path in folders(parent)}
    assert sorted(now) == sorted(ORDER)
    assert {name for name in kept if now[name].anchor == kept[name].anchor} == set(whole)
    assert len({manifest.plan.salt for manifest in now.values()}) == 1


def test_what_pairs_there_are_are_compared_when_the_user_stops_it(tmp_path: Path) -> None:
    with TruthServer(FAST) as fast, TruthServer(SLOW) as slow:
        sides = (f"old={fast.base_url}", f"new={slow.base_url}")
        with begun(*sides, *LOAD, "--blocks", "4", "--output-dir", "r", cwd=tmp_path) as process:
            wait_until(lambda: is_measured(tmp_path / "r" / "a-04", 1))
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "`withstand ab --resume r` measures 1 pair." in " ".join(err.split())
    assert "3 of 4 pairs are measured; `withstand ab --resume r`" in err
    comparison = json.loads((tmp_path / "r" / "comparison.json").read_text())
    assert [len(side["sources"]) for side in comparison["sides"]] == [3, 3]


def test_sigterm_between_its_stages_ends_it_as_ctrl_c_does(tmp_path: Path) -> None:
    with TruthServer(FAST) as fast, TruthServer(SLOW) as slow:
        sides = (f"old={fast.base_url}", f"new={slow.base_url}")
        with begun(*sides, *LOAD, "--blocks", "4", "--output-dir", "r", cwd=tmp_path) as process:
            wait_until((tmp_path / "r" / "a-01").exists)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)
    assert process.returncode in {3, 130}, err  # the second where no block had begun
    assert "Traceback" not in err


def test_what_another_verb_has_begun_is_gone_on_with_by_that_one(tmp_path: Path) -> None:
    with TruthServer(FAST) as fast:
        done = of_urls(fast.base_url, fast.base_url, "--quiet", cwd=tmp_path)
        assert done.returncode in {0, 3}, done.stderr
    for verb, folder, right in (("run", "r", "ab"), ("find-limit", "r", "ab"), ("ab", "r/a-01", "run")):
        command = [*AB[:3], verb, "--resume", folder]
        told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert told.returncode == 2
        assert f"`withstand {right} --resume {folder}` goes on with {folder}" in told.stderr


def test_both_sides_are_asked_before_the_first_block(tmp_path: Path) -> None:
    with TruthServer(FAST) as fast:
        with TruthServer(FAST) as other:
            gone = other.base_url
        done = of_urls(f"old={fast.base_url}", f"new={gone}", cwd=tmp_path)
        assert not [served for served in fast.truth() if served.path.endswith("completions")]
    assert done.returncode == 3
    assert "withstand: new: " in done.stderr
    assert not (tmp_path / "r").exists()


def test_a_side_that_dies_ends_it_after_two_pairs(tmp_path: Path) -> None:
    with TruthServer(FAST) as fast, TruthServer(FAST) as other:
        load = (*LOAD, "--blocks", "4", "--output-dir", "r")
        with begun(f"old={other.base_url}", f"new={fast.base_url}", *load, cwd=tmp_path) as process:
            wait_until((tmp_path / "r" / "a-01" / "run.json").exists)
            assert other.pid is not None
            os.kill(other.pid, signal.SIGKILL)
            _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert err.count("is not measured:") == 2
    assert "`withstand ab --resume r` measures 4 pairs." in " ".join(err.split())


def test_where_neither_side_is_there_nothing_is_left_behind(tmp_path: Path) -> None:
    with TruthServer(FAST) as other:
        gone = other.base_url
    done = of_urls(gone, gone, cwd=tmp_path)
    assert done.returncode == 3
    assert not (tmp_path / "r").exists()


def test_plan_files_may_differ_in_their_targets_only(tmp_path: Path) -> None:
    plan = 'num_warmups = 1\nworkload = {{ num_prompts = {n} }}\n[target]\nmodel = "truth"\nbase_url = "{url}"\n'
    with TruthServer(FAST) as fast, TruthServer(SLOW) as slow:
        (tmp_path / "a.toml").write_text(plan.format(n=9, url=fast.base_url))
        (tmp_path / "b.toml").write_text(plan.format(n=8, url=slow.base_url))
        refused = ab("a.toml", "b.toml", "--output-dir", "r", cwd=tmp_path)
        assert refused.returncode == 2
        assert "a and b must be the same but for the target; workload differs." in refused.stderr.replace("\n", " ")
        done = ab("a.toml", "b.toml", "--num-prompts", "9", "--blocks", "4", "--output-dir", "r", cwd=tmp_path)
    assert code(done, tmp_path / "r") == 0, done.stderr
    assert all(RunFolder.open(path).manifest.state is RunState.DONE for path in folders(tmp_path / "r"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("http://127.0.0.1:1",), "ab measures two sides"),
        (("http://127.0.0.1:1", "http://127.0.0.1:1", "--base-url", "http://127.0.0.1:1"), "no --base-url"),
        (("http://127.0.0.1:1", "nothing"), "nothing is neither a URL"),
        (("http://127.0.0.1:1", "http://127.0.0.1:2", "--blocks", "5"), "--blocks 5: give an even number"),
        (("http://127.0.0.1:1", "http://127.0.0.1:2", "--blocks", "2"), "4 to 10,000"),
        (("http://127.0.0.1:1", "http://127.0.0.1:2", "--plan", "standard"), "leave out rates"),
        (("old=http://127.0.0.1:1", "http://127.0.0.1:2", "--backend", "nope"), "old: target.backend"),
        (("--resume", "r", "http://127.0.0.1:1", "http://127.0.0.1:2"), "leave out A and B"),
        (("--resume", "nowhere"), "nowhere/ab.json cannot be read"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_begun(
    tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    done = ab(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert sentence in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


def test_what_is_wrong_is_said_before_a_stack_is_brought_up(tmp_path: Path) -> None:
    engine = 'kind = "command"\nargs = ["false"]\nserved_as = "m"\n'
    targets = '[plan.targets.a]\nservice = "e"\n[plan.targets.b]\nservice = "e"\n'
    (tmp_path / "two.toml").write_text(f"[engines.e]\n{engine}{targets}")
    done = ab("two.toml", "--blocks", "5", cwd=tmp_path)
    assert (done.returncode, "--blocks 5" in done.stderr) == (2, True)
    assert "starting" not in done.stderr


def test_a_password_in_a_sides_url_is_not_written(tmp_path: Path) -> None:
    with TruthServer(FAST) as server:
        url = server.base_url.replace("http://", "http://me:hunter2@")
        ab(f"old={url}", url, *LOAD, "--num-prompts", "2", "--blocks", "4", "--output-dir", "r", cwd=tmp_path)
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in kept if b"hunter2" in path.read_bytes()] == []


SERVED = """
num_warmups = 1
workload = {{ num_prompts = 12, options = {{ input_len = 8, output_len = 4 }} }}
stages = [{{ max_concurrency = 2 }}]
[target]
model = "truth"
base_url = "http://127.0.0.1:{port}"
serve = {{ argv = ["{python}", "-m", "withstand.testing.truth", "--port", "{port}"], stop_s = 1 }}
"""


def test_a_side_with_a_command_is_started_for_each_block_and_leaves_nothing(tmp_path: Path) -> None:
    port = free_port()
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(SERVED.format(port=port, python=sys.executable))
    done = ab("a.toml", "b.toml", "--blocks", "4", "--output-dir", "r", cwd=tmp_path)
    assert code(done, tmp_path / "r") == 0, done.stderr
    ready = [RunFolder.open(path).manifest.engine_ready_s for path in folders(tmp_path / "r")]
    assert len(ready) == 8
    assert all(seconds is not None and seconds > 0 for seconds in ready)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_different_models_are_refused_beforehand_unless_forced(tmp_path: Path) -> None:
    with TruthServer(FAST) as server:
        for name in ("one", "other"):
            (tmp_path / f"{name}.toml").write_text(f'[target]\nbase_url = "{server.base_url}"\nmodel = "{name}"\n')
        sides, load = ("one.toml", "other.toml"), (*LOAD[2:], "--blocks", "4", "--output-dir", "r")
        refused = ab(*sides, *load, cwd=tmp_path)
        assert not server.truth()
        assert not (tmp_path / "r").exists()
        forced = ab(*sides, *load, "--force", cwd=tmp_path)
    assert refused.returncode == 2
    assert "one and other have different models: one against other; measure one model" in refused.stderr
    assert code(forced, tmp_path / "r") == 0, forced.stderr
    assert "Forced, conditions differ" in forced.stdout
