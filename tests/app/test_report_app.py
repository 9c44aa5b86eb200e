"""From a run folder, whole or cut, to what is shown of it."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from withstand.app.loaded import Loaded
from withstand.app.report import load_run, load_runs
from withstand.errors import UsageError
from withstand.record import Status, encode_record
from withstand.report.client import run_line
from withstand.runs import RunFolder, RunState, StageEntry, Writer, this_process

SAMPLE = Path(__file__).parents[1] / "runs" / "samples" / "schema-1"
WARM_UP, RATE, CLOSED_LOOP = 0, 1, 2


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    shutil.copytree(SAMPLE, tmp_path / "run")
    return RunFolder.open(tmp_path / "run")


def change(folder: RunFolder, **changes: Any) -> None:
    folder.update(msgspec.structs.replace(folder.manifest, **changes))


def change_stage(folder: RunFolder, index: int, **changes: Any) -> None:
    stages = list(folder.manifest.stages)
    stages[index] = msgspec.structs.replace(stages[index], **changes)
    change(folder, stages=tuple(stages))


def stage_names(loaded: Loaded) -> list[str]:
    assert [s.name for s in loaded.series] == [s.name for s in loaded.summary.stages]
    return [s.name for s in loaded.summary.stages]


def partial(folder: RunFolder) -> str:
    loaded = load_run(folder.path)
    assert loaded.summary.partial is not None
    assert not loaded.summary.complete
    return loaded.summary.partial


def dead_process() -> Writer:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as gone:
        gone.wait()
    return Writer(pid=gone.pid, started="1")


def test_a_whole_run_has_its_stages_without_the_warm_up() -> None:
    loaded = load_run(SAMPLE)
    assert stage_names(loaded) == ["rate-4", "concurrency-2"]
    assert [s.completed for s in loaded.summary.stages] == [12, 6]
    assert loaded.summary.partial is None
    assert loaded.summary.complete
    assert (loaded.summary.model_id, loaded.summary.target) == ("sample-model", "http://127.0.0.1:8000")
    assert loaded.about.machine["cores"] == "2"
    assert "sends 0.09 ms late (p99)" in str(run_line(loaded.summary))


def test_a_run_that_goes_on(folder: RunFolder) -> None:
    change(folder, state=RunState.RUNNING, writer=this_process())
    change_stage(folder, CLOSED_LOOP, state=RunState.RUNNING)
    assert "still going on; 1 of 2 stages complete" in partial(folder)


def test_a_run_that_was_killed(folder: RunFolder) -> None:
    change(folder, state=RunState.RUNNING, writer=dead_process())
    assert "killed or crashed" in partial(folder)
    assert "--resume" in partial(folder)


def test_a_run_that_was_interrupted(folder: RunFolder) -> None:
    change(folder, state=RunState.INTERRUPTED)
    change_stage(folder, CLOSED_LOOP, state=RunState.INTERRUPTED)
    assert "interrupted; 1 of 2" in partial(folder)
    (_, cut) = load_run(folder.path).summary.stages
    assert cut.load.stopped_early


def test_a_run_that_could_not_go_on(folder: RunFolder) -> None:
    change(folder, state=RunState.FAILED, error="The endpoint is gone.")
    assert "could not go on (The endpoint is gone.)" in partial(folder)


def test_a_stage_that_failed_is_told_though_the_run_went_on(folder: RunFolder) -> None:
    change_stage(folder, RATE, state=RunState.FAILED)
    assert "1 of 2 stages complete" in partial(folder)


def test_a_stage_without_a_good_answer_is_not_complete(folder: RunFolder) -> None:
    """All 16 of its requests were cut, and it was one of the ``10 of 13 stages``."""
    change(folder, state=RunState.INTERRUPTED)
    cut = [msgspec.structs.replace(record, status=Status.CANCELLED) for record in folder.records(RATE)]
    others = list(folder.records(CLOSED_LOOP))
    (folder.path / "records.jsonl.gz").unlink()
    with folder.worker_file(0).open("wb") as file:
        file.writelines(encode_record(record) + b"\n" for record in (*cut, *others))
    assert "1 of 2 stages complete, 1 ended without a good answer" in partial(folder)


def test_what_was_run_again_counts_once(folder: RunFolder) -> None:
    again = folder.manifest.stages[RATE]
    change_stage(folder, RATE, state=RunState.SUPERSEDED)
    change(folder, stages=(*folder.manifest.stages, again))
    first = list(folder.records(RATE))[:5]
    with folder.worker_file(0).open("wb") as file:
        for record in first:
            file.write(encode_record(msgspec.structs.replace(record, stage=3)) + b"\n")
    loaded = load_run(folder.path)
    assert [(s.name, s.attempted) for s in loaded.summary.stages] == [("concurrency-2", 6), ("rate-4", 5)]
    assert loaded.summary.partial is None


def test_a_stage_without_a_record_is_not_shown(folder: RunFolder) -> None:
    planned = StageEntry(name="later", stage=folder.manifest.stages[RATE].stage)
    begun = msgspec.structs.replace(planned, name="begun", state=RunState.RUNNING)
    change(folder, stages=(*folder.manifest.stages, planned, begun), state=RunState.INTERRUPTED)
    assert stage_names(load_run(folder.path)) == ["rate-4", "concurrency-2"]


def test_lines_that_are_no_records_are_counted(folder: RunFolder) -> None:
    folder.worker_file(0).write_bytes(b"{broken\n{cut")
    assert load_run(folder.path).damaged_lines == 1


def test_one_path_is_shown_as_it_is(folder: RunFolder) -> None:
    assert stage_names(load_runs([folder.path])) == ["rate-4", "concurrency-2"]


def test_several_runs_side_by_side(folder: RunFolder) -> None:
    shutil.copytree(folder.path, folder.path.with_name("other"))
    other = RunFolder.open(folder.path.with_name("other"))
    change(other, model="another-model", state=RunState.INTERRUPTED)
    loaded = load_runs([folder.path, other.path])
    assert stage_names(loaded) == ["run/rate-4", "run/concurrency-2", "other/rate-4", "other/concurrency-2"]
    assert (loaded.summary.model_id, loaded.summary.target) == (None, "http://127.0.0.1:8000")
    assert not loaded.summary.complete
    assert (loaded.summary.partial or "").startswith("other: Partial: the run was interrupted")
    assert loaded.about.title == "run, other"


def test_folders_of_one_name_are_told_apart_by_where_they_lie(folder: RunFolder) -> None:
    twin = folder.path.parent / "deeper" / "run"
    shutil.copytree(folder.path, twin)
    assert stage_names(load_runs([folder.path, twin]))[-1].startswith("deeper/run/")


def test_a_path_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run folder"):
        load_run(tmp_path)
