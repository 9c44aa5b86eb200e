"""A run as it looks now: of a real one that goes on in another process, and of folders that are no good."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from withstand import clock
from withstand.app.follow import Follower, follow
from withstand.metrics.live import METRICS, Current, Snapshot, Told
from withstand.record import Record, encode_record
from withstand.runs import Manifest, RunFolder, RunState, StageEntry, this_process
from withstand.runs.manifest import Writer
from withstand.spec import Plan, Poisson, Slo, Stage
from withstand.testing import Schedule, TruthServer
from withstand.testing.records import make_failure, make_record

QUICK = Schedule(ttft_ms=10, itl_ms=2, tokens=5)
LOAD = Stage(name="rate-100", arrivals=Poisson(100.0), num_prompts=2_000)
NEXT = Stage(name="rate-200", arrivals=Poisson(200.0), duration_s=30.0)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run of ours whose first stage has begun five seconds ago."""
    now = clock.anchor()
    manifest = Manifest(
        version="0",
        created_utc="",
        anchor=clock.Anchor(wall_ns=now.wall_ns - 5_000_000_000, monotonic_ns=now.monotonic_ns - 5_000_000_000),
        plan=Plan(goodput=Slo(ttft=1_000.0)),
        writer=this_process(),
        stages=(
            StageEntry(name=LOAD.name, stage=LOAD, state=RunState.RUNNING),
            StageEntry(name=NEXT.name, stage=NEXT, place=1),
        ),
    )
    return RunFolder.create(tmp_path / "r", manifest)


def append(folder: RunFolder, *records: Record, worker: int = 0) -> None:
    with folder.worker_file(worker).open("ab") as file:
        file.writelines(encode_record(record) + b"\n" for record in records)


def test_a_real_run_is_followed_to_its_end(tmp_path: Path) -> None:
    load = ("--request-rate", "50", "--num-prompts", "150", "--set", "workload.options.output_len=5", "--quiet")
    with TruthServer(QUICK) as server:
        command = [sys.executable, "-m", "withstand", "run", "--base-url", server.base_url, *load, "--output-dir", "r"]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
            until = time.monotonic() + 30
            while not (tmp_path / "r" / "run.json").exists():
                assert time.monotonic() < until
                time.sleep(0.02)
            seen = list(follow(tmp_path / "r", every_s=0.1))
            assert process.wait(30) in {0, 3}, "3: the machine is busy"
    assert seen[-1].state == "done"
    assert [stage.state for stage in seen[-1].stages] == ["done", "done"]
    now = [s.current for s in seen if s.current and s.current.name == "rate-50"]
    assert now
    assert [one.done for one in now] == sorted(one.done for one in now)
    assert 0 < now[-1].done <= 150
    ttft = now[-1].latencies["ttft"].rolling
    assert ttft.p50 is not None
    assert 9 < ttft.p50 < 200
    assert all(msgspec.json.decode(msgspec.json.encode(s), type=Snapshot) == s for s in seen)


def test_what_is_appended_is_seen_and_half_a_line_is_waited_for(folder: RunFolder) -> None:
    follower = Follower(folder.path, look_s=10.0)
    assert current(follower).done == 0
    append(folder, *(make_record(i, sent_ms=1_000 + i) for i in range(50)), make_failure(50, sent_ms=1_100))
    line = encode_record(make_record(51, sent_ms=1_200)) + b"\n"
    with folder.worker_file(1).open("wb", buffering=0) as file:
        file.write(line[:20])
        seen = current(follower)
        assert (seen.done, seen.failed, [e.status for e in seen.errors]) == (51, 1, ["http_error"])
        assert seen.good
        assert seen.good.whole == pytest.approx(50 / 51)
        file.write(line[20:])
    assert current(follower).done == 52
    assert follower.look().stages[0].share == pytest.approx(52 / 2_000)
    assert follower.look().left_s is not None


def test_the_process_that_runs_knows_better(folder: RunFolder) -> None:
    follower = Follower(folder.path)
    follower.look()
    for second in range(3):
        follower.tell(
            Told(elapsed_s=second, sent=100 * second, done=90 * second, failed=second, in_flight=8, output_tokens=0)
        )
        seen = current(follower)
    assert (seen.done, seen.failed, seen.in_flight, seen.rate_sent) == (180, 2, 8, 100.0)


def test_who_comes_late_sees_the_end_and_counts_the_rest(folder: RunFolder) -> None:
    """And a look is never long, though a million bytes are there."""
    append(folder, *(make_record(i, sent_ms=i / 10) for i in range(10_000)))
    follower = Follower(folder.path)
    took = []
    for _ in range(200):
        began_ns = time.thread_time_ns()
        seen = current(follower)
        took.append(time.thread_time_ns() - began_ns)
        if seen.done == 10_000:
            break
    assert seen.done == 10_000
    assert seen.since == "view"
    assert 0 < seen.latencies["ttft"].whole.n < 10_000
    assert sorted(took)[len(took) // 2] < 200_000_000


def test_the_pause_between_two_sittings_is_not_counted(folder: RunFolder) -> None:
    """Three minutes were measured an hour ago, and then it was gone on with."""
    now = clock.anchor()
    hour_ns = 3_600_000_000_000
    began = clock.Anchor(wall_ns=now.wall_ns - hour_ns, monotonic_ns=now.monotonic_ns - hour_ns)
    folder.update(msgspec.structs.replace(folder.manifest, anchor=began, spent_ns=180_000_000_000))
    elapsed_s = Follower(folder.path).look().elapsed_s
    assert elapsed_s is not None
    assert 180 <= elapsed_s < 1_000
    stages = tuple(msgspec.structs.replace(entry, state=RunState.DONE) for entry in folder.manifest.stages)
    folder.update(msgspec.structs.replace(folder.manifest, state=RunState.DONE, stages=stages))
    assert Follower(folder.path).look().elapsed_s == 180.0


def test_what_there_is_no_time_for_is_counted(folder: RunFolder) -> None:
    follower = Follower(folder.path, look_s=0.0)
    follower.look()
    append(folder, *(make_record(i) for i in range(400)), *(make_failure(400 + i) for i in range(100)))
    seen = current(follower)
    assert (seen.done, seen.failed) == (500, 100)
    assert seen.sampled is not None
    assert 0 < seen.sampled < 0.1


def test_what_was_over_before_the_first_look_is_not_of_now(folder: RunFolder) -> None:
    """A page is opened 50 s after the stage began, at 10 req/s, and there is no time to read it all."""
    now = clock.anchor()
    began = clock.Anchor(wall_ns=now.wall_ns - 50_000_000_000, monotonic_ns=now.monotonic_ns - 50_000_000_000)
    folder.update(msgspec.structs.replace(folder.manifest, anchor=began))
    append(folder, *(make_record(i, sent_ms=100.0 * i - 150) for i in range(2, 500)))
    run_json = folder.path / "run.json"
    os.utime(run_json, ns=(began.wall_ns, began.wall_ns))
    seen = current(Follower(folder.path, look_s=0.0))
    assert seen.done == 498
    assert seen.sampled is not None
    assert seen.pace
    assert max(seen.pace.ended) <= 20
    assert seen.rate_ended is not None
    assert 0 < seen.rate_ended <= 12
    assert current(Follower(folder.path, look_s=10.0)).sampled is None


@pytest.mark.parametrize("data", [b"", b"{}", b"[" * 100_000, b'{"schema": 99}', b'{"schema": 1, "plan": {}}', b"\xff"])
def test_a_damaged_folder_is_said_to_be_one(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "run.json").write_bytes(data)
    (snapshot,) = follow(tmp_path)
    assert snapshot.state == "unreadable"
    assert snapshot.error


def test_a_folder_without_a_run_and_one_with_a_pipe_for_it(tmp_path: Path) -> None:
    (snapshot,) = follow(tmp_path / "nowhere")
    assert snapshot.state == "unreadable"
    os.mkfifo(tmp_path / "run.json")
    (snapshot,) = follow(tmp_path)
    assert snapshot.state == "unreadable"


def test_records_that_lie_elsewhere_are_not_read(folder: RunFolder, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_bytes(encode_record(make_failure(0, error="what nobody here shall see")) + b"\n")
    folder.worker_file(0).symlink_to(elsewhere)
    assert "nobody" not in str(Follower(folder.path).look())


def test_strange_files_and_numbers_break_nothing(folder: RunFolder) -> None:
    follower = Follower(folder.path)
    follower.look()
    os.mkfifo(folder.path / "records.w7.jsonl")
    (folder.path / "records.w8.jsonl").symlink_to("/dev/zero")
    (folder.path / "records.w9.jsonl").mkdir()
    (folder.path / "samples.jsonl").write_bytes(b"[" * 100_000 + b'\n{"at_ns":1,"source":"a","values":{}}\n\xff\n')
    huge, least = 2**63 - 1, -(2**63)
    append(
        folder,
        make_record(0, end_ns=huge, chunk_ns=[least, huge], output_tokens=huge),
        make_record(1, sent_ns=huge, chunk_ns=[huge, least], unsure=[7, -9], output_tokens=-1),
        make_record(2, chunk_tokens=[huge] * 3, end_ns=least),
    )
    with folder.worker_file(0).open("ab") as file:
        file.write(b'{"id":1,"stage":0,"status":"ok","output_tokens":1' + b"0" * 400 + b"}\n\x00\n{}\n")
    for _ in range(3):
        seen = follower.look()
        assert seen.current
        msgspec.json.encode(seen)
    assert seen.server


@pytest.mark.parametrize("number", ["1e400", "-1", str(2**70), "9" * 400, '"x"', "null"])
@pytest.mark.parametrize(
    "name", ["wall_ns", "monotonic_ns", "pid", "started_ns", "ended_ns", "rate", "num_prompts", "place"]
)
def test_strange_numbers_in_a_manifest_break_nothing(folder: RunFolder, name: str, number: str) -> None:
    path = folder.path / "run.json"
    folder.update(
        msgspec.structs.replace(
            folder.manifest,
            stages=(*folder.manifest.stages, StageEntry(name="x", stage=LOAD, place=2, started_ns=1, ended_ns=2)),
        )
    )
    append(folder, make_record(0))
    text, changed = re.subn(rf'("{name}": )[^,\n]+', rf"\g<1>{number}", path.read_text())
    assert changed
    path.write_text(text)
    seen = Follower(folder.path).look()
    assert seen.stages or seen.error
    msgspec.json.encode(seen)


def test_a_run_whose_process_is_gone_was_killed(folder: RunFolder) -> None:
    with subprocess.Popen(["true"]) as gone:
        pass
    writer = msgspec.structs.replace(this_process(), pid=gone.pid)
    folder.update(msgspec.structs.replace(folder.manifest, writer=writer))
    assert [s.state for s in follow(folder.path)] == ["killed"]


def current(follower: Follower) -> Current:
    seen = follower.look().current
    assert seen
    assert set(seen.latencies) == set(METRICS)
    return seen


def test_a_run_that_ends_while_one_looks_was_not_killed(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(_: Writer) -> bool:
        folder.update(msgspec.structs.replace(folder.manifest, state=RunState.DONE))
        return False

    monkeypatch.setattr("withstand.app.follow.still_runs", ends)
    assert Follower(folder.path).look().state == "done"
