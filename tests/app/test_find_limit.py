"""``withstand find-limit`` as a user has it: a server with so many slots, a promise, a limit; cut, and gone on with."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from withstand.runs import RunFolder, RunState
from withstand.testing import Schedule, TruthServer

SERVER = Schedule(ttft_ms=10, itl_ms=3, tokens=11)
"""40 ms an answer: with two slots 50 requests a second at the most."""
FIND = (sys.executable, "-m", "withstand", "find-limit")
QUICK = ("--probe", "10", "--set", "workload.options.input_len=8", "--set", "find_limit.rest_s=0.1")
PROMISE = ("--slo", "ttft:p50:30", "--start", "20", "--precision", "100%")


def find_limit(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*FIND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a search to its end, and what was shown of it."""
    folder = tmp_path_factory.mktemp("search")
    with TruthServer(SERVER, slots=2) as server:
        target = ("--base-url", server.base_url, "--output-len", "11")
        price = ("--price-per-hour", "3.6", "--against-token-price", "3:6")
        done = find_limit(*target, *PROMISE, *QUICK, *price, "--output-dir", "r", cwd=folder)
    assert done.returncode in {0, 3}, done.stderr  # 3: this machine was too busy to measure well
    return folder / "r", done.stdout


def test_the_limit_of_a_server_lies_in_the_interval(search: tuple[Path, str]) -> None:
    folder, shown = search
    limit = json.loads((folder / "summary.json").read_text())["limit"]
    assert limit["interval"]["low"] >= 20
    assert limit["interval"]["high"] <= 80
    assert limit["interval"]["low"] <= limit["load"] <= limit["interval"]["high"]
    tried = {probe["load"]: probe["look"]["standing"] for probe in limit["probes"]}
    assert tried[20] == "holds"
    assert tried[max(tried)] in {"breaks", "grows"}
    entries = RunFolder.open(folder).manifest.stages
    assert {e.state for e in entries} == {RunState.DONE}
    assert {e.ended_by for e in entries} & {"p50 TTFT ≤ 30 ms is broken", "the queue has no end"}
    assert "req/s, between" in shown
    assert "req/s, between" in reported(folder)


def reported(folder: Path) -> str:
    command = [sys.executable, "-m", "withstand", "report", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_a_search_says_what_its_limit_means_for_a_bill(search: tuple[Path, str]) -> None:
    folder, shown = search
    assert "req/s, the limit, it is" in " ".join(shown.split())
    economy = json.loads((folder / "summary.json").read_text())["economy"]
    assert economy["sustained"]["stage"] is None
    assert economy["break_even"]["rate_rps"] == pytest.approx(0.001 / 0.00009)
    low, high = (economy["break_even"]["times_interval"][end] for end in ("low", "high"))
    assert low <= economy["break_even"]["times_cheaper"] <= high
    assert "the limit, it is" in " ".join(reported(folder).split())


def test_where_one_user_does_not_get_what_is_promised_nothing_is_searched(tmp_path: Path) -> None:
    with TruthServer(Schedule(ttft_ms=60, itl_ms=1, tokens=11)) as server:
        target = ("--base-url", server.base_url, "--output-len", "11")
        done = find_limit(*target, "--slo", "ttft:p95:5", *QUICK, "--output-dir", "r", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "Nothing can be promised: p95 TTFT ≤ 5 ms is broken for one user at a time." in done.stdout


KEPT_TO = ("--output-len", "11", *QUICK, "--set", "find_limit.rest_s=0.02")


@pytest.mark.parametrize(
    ("slots", "batch", "promise"),
    [
        (2, 0.0, "ttft:p75:30"),
        (None, 0.5, "itl:p75:9"),
        (2, 0.0, "response:p60:60"),
    ],
)
def test_each_time_can_be_promised_at_any_percentile(
    slots: int | None, batch: float, promise: str, tmp_path: Path
) -> None:
    with TruthServer(SERVER, slots=slots, batch=batch) as server:
        search = ("--slo", promise, "--slo", "success:80%", "--start", "100", "--budget", "12s")
        done = find_limit("--base-url", server.base_url, *KEPT_TO, *search, "--json", cwd=tmp_path)
    limit = json.loads(done.stdout)
    standings = {probe["look"]["standing"] for probe in limit["probes"] if probe["load"] == 100}
    assert standings & {"breaks", "grows"}, done.stderr
    metric = promise.partition(":")[0]
    assert [one["metric"] for one in limit["promises"]] == [metric, "success"]
    assert all(probe["times"][0]["value"] > 0 and probe["times"][1] is None for probe in limit["probes"])


def test_a_budget_is_kept_also_where_a_load_leaves_a_long_queue(tmp_path: Path) -> None:
    """Four times what the server can: when the last of its requests was asked, 30 s of work are left."""
    with TruthServer(SERVER, slots=2) as server:
        search = ("--slo", "ttft:p75:30", "--start", "200", "--budget", "12s", "--output-dir", "r")
        begun = time.monotonic()
        find_limit("--base-url", server.base_url, *KEPT_TO, *search, cwd=tmp_path)
    assert time.monotonic() - begun < 25


def test_what_tokens_may_cost_is_the_lower_end(tmp_path: Path) -> None:
    """11 tokens a request: at 1 an hour a million of them cost 0.9 at 28 requests a second."""
    with TruthServer(SERVER, slots=2) as server:
        target = ("--base-url", server.base_url, *KEPT_TO, *PROMISE, "--price-per-hour", "1", "--budget", "12s")
        done = find_limit(*target, "--slo", "cost:0.9", "--json", "--output-dir", "r", cwd=tmp_path)
    floor = json.loads(done.stdout)["floor"]
    assert floor["load"] == pytest.approx(1e6 / 3600 / 0.9 / 11, rel=0.02)
    unknown = find_limit("--base-url", "http://127.0.0.1:1", "--slo", "cost:1", "--slo", "success:99%", cwd=tmp_path)
    assert unknown.returncode == 2
    assert "give --price-per-hour" in unknown.stderr


def test_a_limiter_is_named_and_not_taken_for_the_engine(tmp_path: Path) -> None:
    with TruthServer(SERVER, behaviour={"plain": 0.6, "limited": 0.4}) as server:
        search = ("--slo", "success:90%", "--start", "40", "--budget", "10s")
        done = find_limit("--base-url", server.base_url, *KEPT_TO, *search, cwd=tmp_path)
    assert done.returncode in {1, 3}
    assert "limiter" in done.stdout
    assert "not the engine's" in done.stdout


def test_of_a_server_that_dies_no_limit_is_told(tmp_path: Path) -> None:
    """What it could not answer because it was gone is no promise that it broke."""
    with TruthServer(SERVER, slots=2) as server:
        target = ("--base-url", server.base_url, *KEPT_TO, "--slo", "ttft:p75:200", "--start", "20")
        command = [*FIND, *target, "--output-dir", str(tmp_path / "r")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        _wait_for_a_load(tmp_path / "r", process, "rate-20")
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "breaks first" not in said
    entry = RunFolder.open(tmp_path / "r").manifest.stages[2]
    assert entry.state is not RunState.DONE  # it is tried again when the search is gone on with


@pytest.mark.parametrize("after_s", [0.3, 1.7])
def test_a_search_that_is_killed_again_and_again_tries_the_same_loads(after_s: float, tmp_path: Path) -> None:
    """Those that were known stay as they were; those that were cut are tried once more."""
    with TruthServer(SERVER, slots=2) as server:
        target = ("--base-url", server.base_url, *KEPT_TO, *PROMISE, "--budget", "18s")
        process = _started(*target, "--output-dir", str(tmp_path / "r"))
        _wait_for_a_load(tmp_path / "r", process, "rate-20")
        known: list[str] = []
        for _ in range(3):
            time.sleep(after_s)
            process.kill()
            process.wait()
            now = _known(tmp_path / "r")
            assert now[: len(known)] == known
            known = now
            process = _started("--resume", str(tmp_path / "r"))
        assert process.wait(60) in {0, 3}  # 3: on a busy machine our own client may be in the way
    entries = _known(tmp_path / "r")
    assert entries[: len(known)] == known
    names = [json.loads(one)[0] for one in entries]
    assert len(names) == len(set(names))
    assert names[:2] == ["alone", "rate-20"]
    assert len(json.loads((tmp_path / "r" / "summary.json").read_text())["limit"]["probes"]) >= len(names) - 1


def test_a_search_that_was_killed_before_its_next_load_was_chosen_goes_on(tmp_path: Path) -> None:
    """All of its stages are done then, and none is left to be looked at beforehand."""
    with TruthServer(SERVER, slots=2) as server:
        target = ("--base-url", server.base_url, *KEPT_TO, "--slo", "ttft:p50:30", "--start", "200", "--budget", "20s")
        process = _started(*target, "--output-dir", str(tmp_path / "r"))
        _wait_for_a_load(tmp_path / "r", process, "rate-200")
        process.kill()
        process.wait()
        manifest = json.loads((tmp_path / "r" / "run.json").read_text())
        manifest["stages"] = [stage for stage in manifest["stages"] if stage["state"] == "done"]
        (tmp_path / "r" / "run.json").write_text(json.dumps(manifest))
        done = find_limit("--resume", "r", cwd=tmp_path)
    assert done.returncode in {0, 3}
    assert "fault of withstand" not in done.stderr
    assert "rate-200" in _names(tmp_path / "r")


def test_a_search_whose_budget_was_little_says_so_and_gets_more_of_it(tmp_path: Path) -> None:
    with TruthServer(SERVER, slots=2) as server:
        target = ("--base-url", server.base_url, *KEPT_TO, "--slo", "ttft:p50:30", "--start", "20")
        cut = find_limit(*target, "--budget", "10s", "--precision", "1%", "--output-dir", "r", cwd=tmp_path)
        before = _names(tmp_path / "r")
        more = find_limit("--resume", "r", "--budget", "6s", cwd=tmp_path)
    assert "That is little" in cut.stderr
    assert "not known in this time" not in cut.stderr.partition("rate-20")[0]
    assert "`withstand find-limit --resume r --budget 4m` goes on with it" in cut.stderr
    assert "fault of withstand" not in more.stderr
    after = _names(tmp_path / "r")
    assert after[: len(before)] == before
    assert len(after) > len(before)


def test_sigterm_while_the_server_rests_is_as_ctrl_c(tmp_path: Path) -> None:
    with TruthServer(SERVER, slots=2) as server:
        rest = ("--slo", "ttft:p50:30", "--start", "20", "--set", "find_limit.rest_s=60", "--output-dir", "r")
        command = [*FIND, "--base-url", server.base_url, "--output-len", "11", *QUICK[:4], *rest]
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        assert process.stderr is not None
        said = ""
        while "alone: " not in said:
            said = process.stderr.readline()
            assert said
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 3
    assert "Interrupted. " in err
    assert RunFolder.open(tmp_path / "r").manifest.state is RunState.INTERRUPTED


def test_a_folder_of_a_search_can_be_read_whatever_time_it_gets_more(tmp_path: Path) -> None:
    with TruthServer(SERVER, slots=2) as server:
        target = (
            "--base-url",
            server.base_url,
            *KEPT_TO,
            "--slo",
            "ttft:p50:30",
            "--start",
            "20",
            "--set",
            "budget_s=4",
        )
        cut = find_limit(*target, "--output-dir", "r", cwd=tmp_path)
        before = _names(tmp_path / "r")
        little = find_limit("--resume", "r", "--budget", "0.5s", cwd=tmp_path)
        assert _names(tmp_path / "r") == before
        more = find_limit("--resume", "r", "--budget", "12s", cwd=tmp_path)
    assert "left out" in cut.stderr
    assert little.returncode == 2
    assert "a search needs 10 s" in little.stderr
    assert "nothing is left to run" not in more.stderr, "the budget of its plan is not the one that holds now"
    entries = RunFolder.open(tmp_path / "r").manifest.stages
    assert [e.state for e in entries if e.stage.warmup] == [RunState.SUPERSEDED, RunState.DONE], "it may be cold by now"
    assert any(e.name.startswith("rate-") and e.state is RunState.DONE for e in entries)


def _names(folder: Path) -> list[str]:
    return [entry.name for entry in RunFolder.open(folder).manifest.stages]


def test_a_budget_holds_also_where_the_server_hangs(tmp_path: Path) -> None:
    with TruthServer(SERVER, behaviour="hang") as server:
        search = ("--slo", "ttft:p50:30", "--budget", "10s")
        done = find_limit("--base-url", server.base_url, *KEPT_TO, *search, cwd=tmp_path)
    assert done.returncode == 3
    assert "Nothing is known" in done.stdout
    assert "the budget of 10 s leaves no time for another load" in " ".join(done.stdout.split())


def _started(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([*FIND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _known(folder: Path) -> list[str]:
    """The stages of the search that are done, and what was found of each."""
    entries = [e for _, e in RunFolder.open(folder).manifest.in_order() if e.state is RunState.DONE]
    return [json.dumps((e.name, e.look and str(e.look))) for e in entries if not e.stage.warmup]


def _wait_for_a_load(folder: Path, process: "subprocess.Popen[Any]", name: str) -> None:
    """Until it is under way."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None
        if (folder / "run.json").exists() and f'"name": "{name}"' in (folder / "run.json").read_text():
            return
        time.sleep(0.05)
    raise AssertionError(f"{name} was not tried")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "give --slo ttft:p95:500"),
        (("--slo", "ttft:500"), "'ttft:500' is no promise; write ttft:p95:500"),
        (("--slo", "success:101%"), "is no promise"),
        (("--slo", "ttft:p95:500", "--precision", "x"), "--precision: 'x' is no percentage"),
        (("--slo", "ttft:p95:500", "--budget", "soon"), "--budget soon: give a time with its unit"),
        (("--slo", "ttft:p95:500", "--budget", "3s"), "budget"),
        (("--slo", "cost:nothing"), "'cost:nothing' is no promise"),
        (("--slo", "cost:0.5", "--price-per-hour", "2"), "promise something that more load breaks too"),
        (("--slo", "ttft:p95:9", "--slo", "cost:1", "--slo", "cost:2", "--price-per-hour", "2"), "give one of them"),
        (("--resume", "r", "--slo", "ttft:p95:500"), "leave out --slo"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(arguments: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    done = find_limit("--base-url", "http://127.0.0.1:1", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_closed_loop_that_ends_when_its_load_is_known_has_not_run_out_of_prompts(tmp_path: Path) -> None:
    with TruthServer(SERVER, slots=2) as server:
        target = ("--base-url", server.base_url, "--output-len", "11")
        search = ("--slo", "ttft:p50:30", "--axis", "concurrency", "--start", "8", "--precision", "100%")
        done = find_limit(*target, *search, *QUICK, "--budget", "15s", "--output-dir", "r", cwd=tmp_path)
    assert "concurrency-8: p50 TTFT ≤ 30 ms is broken" in done.stderr
    assert "no more prompts" not in done.stderr
