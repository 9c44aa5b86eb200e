"""A large run is read by several processes; what is shown is what one would have read."""

import gzip
import shutil
from pathlib import Path

import pytest

from withstand.app import gather
from withstand.app.report import load_run
from withstand.app.subjects import sides_of
from withstand.errors import StorageError
from withstand.record import encode_record
from withstand.runs import RunFolder

SAMPLE = Path(__file__).parents[1] / "runs" / "samples" / "schema-1"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """One for which a single byte is large."""
    monkeypatch.setattr(gather, "_LARGE_BYTES", 1)
    shutil.copytree(SAMPLE, tmp_path / "run")
    return RunFolder.open(tmp_path / "run")


def plain(folder: RunFolder) -> Path:
    """Its records, unpacked."""
    path = folder.path / "records.jsonl"
    path.write_bytes(b"".join(encode_record(record) + b"\n" for record in folder.records()))
    for other in folder.path.glob("records.*"):
        if other != path:
            other.unlink()
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_several_readers_show_what_one_shows(folder: RunFolder, *, packed: bool) -> None:
    path = plain(folder)
    if packed:
        path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    one, several = load_run(SAMPLE), load_run(folder.path)
    assert several.summary == one.summary
    assert several.series == one.series


def test_several_readers_are_as_sure_as_one(folder: RunFolder) -> None:
    plain(folder)
    one, several = sides_of([str(SAMPLE), str(folder.path)], None)
    assert [run.estimates for run in several.runs] == [run.estimates for run in one.runs]
    assert [run.schedule for run in several.runs] == [run.schedule for run in one.runs]


def test_damaged_lines_are_counted_once(folder: RunFolder) -> None:
    with plain(folder).open("ab") as file:
        file.write(b"{broken\n")
    assert load_run(folder.path).damaged_lines == 1


def test_a_crash_between_gathering_and_removing_duplicates_nothing(folder: RunFolder) -> None:
    records = list(folder.records())
    folder.worker_file(0).write_bytes(b"".join(encode_record(record) + b"\n" for record in records))
    assert load_run(folder.path).summary == load_run(SAMPLE).summary


def test_a_reader_that_fails_says_why(folder: RunFolder) -> None:
    plain(folder).unlink()
    (folder.path / "records.jsonl").mkdir()
    with pytest.raises(StorageError, match=r"records\.jsonl cannot be read: Is a directory\.$"):
        load_run(folder.path)


def test_a_reader_that_dies_is_noticed(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHOME", str(folder.path))
    with pytest.raises(StorageError, match=r"A process that read .*run died \(.+\)"):
        load_run(folder.path)
