"""Run folders that are given to be fitted: what cannot be meant is refused by name."""

import gzip
from pathlib import Path

import pytest

from withstand import clock
from withstand.app.fit import fitted_runs
from withstand.errors import MeasureError, UsageError
from withstand.runs import Asked, Manifest, RunFolder, TargetsFolder, this_process
from withstand.spec import Plan, Target


def test_of_several_targets_runs_the_user_has_to_choose(tmp_path: Path) -> None:
    plan = Plan(targets={"a": Target(), "b": Target()})
    folder = TargetsFolder.create(
        tmp_path / "r", Asked(version="0", created_utc="now", plan=plan, writer=this_process())
    )
    with pytest.raises(UsageError, match="r holds a run for each of its targets; none has begun yet"):
        fitted_runs([folder.path])
    manifest = Manifest(version="0", created_utc="", anchor=clock.anchor(), plan=plan, writer=this_process())
    for name in "ab":
        RunFolder.create(folder.of(name), manifest)
    with pytest.raises(UsageError, match=r"choose those of one engine: .*/r/a, .*/r/b\.$"):
        fitted_runs([folder.path])


@pytest.mark.parametrize("cut", [False, True])
def test_damaged_records_are_no_model(cut: bool, tmp_path: Path) -> None:
    manifest = Manifest(version="0", created_utc="", anchor=clock.anchor(), plan=Plan(), writer=this_process())
    folder = RunFolder.create(tmp_path / "r", manifest)
    text = b"not a record\n" * 500
    (folder.path / "records.jsonl.gz").write_bytes(gzip.compress(text)[: 30 if cut else None])
    with pytest.raises(MeasureError, match="r are damaged"):
        fitted_runs([folder.path])
