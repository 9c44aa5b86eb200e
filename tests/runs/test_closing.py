"""The closed file and the manifest under failing disks, cuts and power losses."""

import gzip
import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from withstand import clock
from withstand.errors import StorageError
from withstand.files import write_atomically
from withstand.record import Record, Status, encode_record
from withstand.runs import Manifest, RunFolder, RunState, machine_facts, this_process
from withstand.spec import Plan

SAMPLE = Path(__file__).parent / "samples" / "schema-1"


@contextmanager
def disk_with_room_for(size_bytes: int) -> Iterator[None]:
    """No file may grow beyond this; a write that would fails as on a full disk."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)


def folder_with(path: Path, count: int) -> RunFolder:
    manifest = Manifest(
        version="0",
        created_utc="now",
        anchor=clock.anchor(),
        plan=Plan(),
        writer=this_process(),
        machine=machine_facts(),
    )
    folder = RunFolder.create(path, manifest)
    with folder.worker_file(0).open("wb") as file:
        for i in range(count):
            file.write(encode_record(Record(id=i, stage=0, status=Status.OK, error=str(i) * 50)) + b"\n")
    return folder


def ids(folder: RunFolder) -> list[int]:
    return [record.id for record in folder.records()]


def names(folder: RunFolder) -> set[str]:
    return {path.name for path in folder.path.iterdir()}


def test_a_full_disk_while_closing_keeps_the_parts(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "run", 200)
    with disk_with_room_for(100), pytest.raises(StorageError, match="Free some space"):
        folder.close()
    assert names(folder) == {"run.json", "records.w0.jsonl"}
    assert ids(folder) == list(range(200))
    folder.close()
    assert ids(folder) == list(range(200))


def test_a_full_disk_keeps_the_manifest_as_it_was(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "run", 1)
    with disk_with_room_for(10), pytest.raises(StorageError, match=r"run\.json cannot be written"):
        folder.update(msgspec.structs.replace(folder.manifest, state=RunState.DONE))
    assert RunFolder.open(folder.path).manifest.state is RunState.RUNNING
    assert names(folder) == {"run.json", "records.w0.jsonl"}


def test_a_folder_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "run", 1)
    shutil.rmtree(folder.path)
    with pytest.raises(StorageError, match="cannot be written"):
        folder.update(folder.manifest)
    with pytest.raises(StorageError, match="Choose a folder"):
        write_atomically(Path("/dev/null/x"), b"")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(share=st.floats(0, 1), flip=st.booleans())
def test_a_damaged_closed_file_gives_what_stands_before_the_damage(tmp_path: Path, share: float, flip: bool) -> None:
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    folder = folder_with(tmp_path / "run", 50)
    folder.close()
    closed = folder.path / "records.jsonl.gz"
    data = bytearray(closed.read_bytes())
    at = min(int(share * len(data)), len(data) - 1)
    if flip:
        data[at] ^= 0xFF
    closed.write_bytes(data if flip else data[:at])
    read = ids(folder)
    assert read == list(range(50)) or folder.damaged_lines or not read


def test_a_file_that_may_not_be_read_is_one_sentence(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "run", 1)
    folder.worker_file(0).unlink()
    folder.worker_file(0).mkdir()
    with pytest.raises(StorageError, match=r"records\.w0\.jsonl cannot be read"):
        ids(folder)


def test_a_closed_folder_may_be_closed_again(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "run", 3)
    folder.close()
    folder.close()
    assert ids(folder) == [0, 1, 2]


def test_the_closed_file_is_plain_gzip_of_lines() -> None:
    with gzip.open(SAMPLE / "records.jsonl.gz", "rt", encoding="utf-8") as lines:
        assert all(msgspec.json.decode(line)["status"] == "ok" for line in lines)


def test_the_machine_is_described() -> None:
    facts = machine_facts()
    assert {"system", "cores", "memory", "python", "withstand"} <= facts.keys()
    assert int(facts["cores"]) >= 1
