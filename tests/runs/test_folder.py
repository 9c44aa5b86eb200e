"""A run folder: what is finished is never lost, whatever happens to the writer."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from withstand import clock
from withstand.errors import StorageError, UsageError
from withstand.load.sink import RecordSink
from withstand.record import SCHEMA, Record, Status, encode_record
from withstand.runs import Manifest, RunFolder, RunState, still_runs, this_process
from withstand.runs.folder import free_bytes, new_folder
from withstand.spec import Plan


def manifest(**more: object) -> Manifest:
    fields = {"version": "0", "created_utc": "now", "anchor": clock.anchor(), "plan": Plan(), "writer": this_process()}
    return Manifest(**{**fields, **more})


def record(i: int, stage: int = 0) -> Record:
    return Record(id=i, stage=stage, status=Status.OK, chunk_ns=[i, i + 1], text_head="ä" * 5)


def folder_with(tmp_path: Path, *records: Record) -> RunFolder:
    folder = RunFolder.create(tmp_path / "run", manifest())
    for r in records:
        with folder.worker_file(r.worker).open("ab") as file:
            file.write(encode_record(r) + b"\n")
    return folder


def test_what_was_written_is_read(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, record(0), record(1), record(0, stage=1))
    again = RunFolder.open(folder.path)
    assert again.manifest == folder.manifest
    assert list(again.records()) == [record(0), record(1), record(0, stage=1)]
    assert list(again.records(stage=1)) == [record(0, stage=1)]


def test_closing_gathers_and_compresses(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, record(0), record(1))
    folder.close()
    assert sorted(p.name for p in folder.path.iterdir()) == ["records.jsonl.gz", "run.json"]
    assert list(folder.records()) == [record(0), record(1)]


def test_a_crash_between_gathering_and_removing_duplicates_nothing(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, record(0), record(1))
    part = folder.worker_file(0).read_bytes()
    folder.close()
    folder.worker_file(0).write_bytes(part + encode_record(record(2)) + b"\n")
    assert list(folder.records()) == [record(0), record(1), record(2)]
    folder.close()
    assert list(folder.records()) == [record(0), record(1), record(2)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(cut=st.integers(0, 400))
def test_a_file_cut_anywhere_gives_all_whole_records(tmp_path: Path, cut: int) -> None:
    lines = [encode_record(record(i)) + b"\n" for i in range(3)]
    data = b"".join(lines)[:cut]
    folder = RunFolder(tmp_path, manifest())
    folder.worker_file(0).write_bytes(data)
    whole = sum(len(b"".join(lines[: i + 1]).rstrip(b"\n")) <= cut for i in range(3))
    assert list(folder.records()) == [record(i) for i in range(whole)]
    assert folder.damaged_lines == 0


def test_damage_in_the_middle_is_counted(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, record(0))
    with folder.worker_file(0).open("ab") as file:
        file.write(b"{broken\n" + encode_record(record(1)) + b"\n")
    assert list(folder.records()) == [record(0), record(1)]
    assert folder.damaged_lines == 1


def test_a_sink_does_not_glue_to_a_cut_line(tmp_path: Path) -> None:
    path = tmp_path / "records.w0.jsonl"
    path.write_bytes(encode_record(record(0)) + b"\n" + encode_record(record(1))[:-7])
    sink = RecordSink(path)
    sink.append(record(2))
    sink.close()
    assert list(RunFolder(tmp_path, manifest()).records()) == [record(0), record(2)]


WRITER = """
import sys
from pathlib import Path
from withstand.load.sink import RecordSink
from withstand.record import Record, Status
sink = RecordSink(Path(sys.argv[1]))
for i in range(10**9):
    sink.append(Record(id=i, stage=0, status=Status.OK, chunk_ns=list(range(50))))
    if i == 100:
        print("going", flush=True)
"""


def test_kill_minus_nine_loses_no_finished_record(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", manifest())
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(folder.worker_file(0))], stdout=subprocess.PIPE)
    with writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.05)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    ids = [r.id for r in folder.records()]
    assert len(ids) > 100
    assert ids == list(range(len(ids)))


def test_a_full_disk_keeps_what_was_there(tmp_path: Path) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    path = tmp_path / "records.w0.jsonl"
    sink = RecordSink(path)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    size = len(encode_record(record(0))) + 1
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size * 2 + 5, limit[1]))
        sink.append(record(0))
        sink.append(record(0))
        with pytest.raises(StorageError, match="--resume"):
            sink.append(record(0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
        sink.close()
    assert path.stat().st_size == size * 2


def test_folders_that_must_not_be_used(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    with pytest.raises(UsageError, match="--resume"):
        RunFolder.create(folder.path, manifest())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").touch()
    with pytest.raises(UsageError, match="not empty"):
        RunFolder.create(tmp_path / "other", manifest())
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file"):
        RunFolder.create(tmp_path / "file", manifest())
    with pytest.raises(StorageError, match="cannot be written"):
        RunFolder.create(tmp_path / "file" / "below", manifest())
    with pytest.raises(UsageError, match=r"no run\.json"):
        RunFolder.open(tmp_path)


@pytest.mark.parametrize("data", [b"", b"{", b'{"schema": 1}', b"[" * 100_000])
def test_a_damaged_manifest_is_said(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "run.json").write_bytes(data)
    with pytest.raises(StorageError, match=r"run\.json is damaged"):
        RunFolder.open(tmp_path)


@pytest.mark.parametrize("data", [b"[]", b"{}", b'{"schema": "x"}'])
def test_a_manifest_of_another_tool_is_no_damage(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "run.json").write_bytes(data)
    assert not RunFolder.is_one(tmp_path)
    with pytest.raises(UsageError, match="of another tool"):
        RunFolder.open(tmp_path)


def test_a_later_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(b'{"schema": 99}')
    with pytest.raises(StorageError, match="later withstand"):
        RunFolder.open(tmp_path)


@pytest.mark.parametrize("schema", range(1, SCHEMA))
def test_the_stored_sample_of_each_older_schema_still_reads(schema: int) -> None:
    folder = RunFolder.open(Path(__file__).parent / "samples" / f"schema-{schema}")
    records = list(folder.records())
    assert folder.manifest.state is RunState.DONE
    assert len(records) == sum(e.planned_requests or 0 for e in folder.manifest.stages) > 0
    assert {r.status for r in records} == {Status.OK}


def test_a_writer_that_is_gone_is_known() -> None:
    assert still_runs(this_process())
    with subprocess.Popen([sys.executable, "-c", "pass"]) as gone:
        gone.wait()
    assert not still_runs(type(this_process())(pid=gone.pid, started="1"))
    assert not still_runs(type(this_process())(pid=os.getpid(), started="1"))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system tells no states of processes")
def test_a_writer_that_was_killed_is_gone_though_its_parent_takes_no_note() -> None:
    says = "from withstand.runs import this_process; print(this_process().started, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", says], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        writer = type(this_process())(pid=child.pid, started=child.stdout.readline().decode().strip())
        assert still_runs(writer)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not still_runs(writer)


def test_runs_that_begin_at_the_same_instant_have_a_folder_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(clock, "local_stamp", lambda: "now")
    made = [new_folder(None, "run.json") for _ in range(3)]
    assert made == [Path("runs/now"), Path("runs/now-2"), Path("runs/now-3")]


def test_where_no_folder_of_its_own_can_be_made_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(StorageError, match="cannot be written"):
        new_folder(None, "run.json")


def test_free_space_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "a" / "b") > 0
