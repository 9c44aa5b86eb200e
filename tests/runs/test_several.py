"""The folder of a plan with several targets."""

import os
from pathlib import Path

import pytest

from withstand.errors import StorageError, UsageError
from withstand.runs import Asked, TargetsFolder, Writer, this_process
from withstand.spec import Plan, Target

ASKED = Asked(version="0", created_utc="now", plan=Plan(targets={"a": Target(), "b": Target()}), writer=this_process())


def test_what_was_asked_is_read_back_and_what_is_begun_is_told_in_the_plans_order(tmp_path: Path) -> None:
    folder = TargetsFolder.create(tmp_path / "r", ASKED)
    assert TargetsFolder.is_one(tmp_path / "r")
    assert TargetsFolder.open(tmp_path / "r").asked == ASKED
    assert folder.begun() == {}


def test_a_folder_that_holds_one_already_is_refused(tmp_path: Path) -> None:
    TargetsFolder.create(tmp_path / "r", ASKED)
    with pytest.raises(UsageError, match="holds a run already; go on with it by --resume"):
        TargetsFolder.create(tmp_path / "r", ASKED)


@pytest.mark.parametrize("text", ["", "{", "[" * 5000, '{"schema": 1}', '{"plan": {"targets": {"../x": {}}}}', "\x00"])
def test_what_is_damaged_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "targets.json").write_text(text)
    with pytest.raises(StorageError, match=r"targets.json is damaged"):
        TargetsFolder.open(tmp_path)


def test_only_one_process_goes_from_target_to_target(tmp_path: Path) -> None:
    parent = Writer(os.getppid(), None)
    folder = TargetsFolder.create(tmp_path / "r", Asked(version="0", created_utc="now", plan=ASKED.plan, writer=parent))
    with pytest.raises(UsageError, match=f"is being written by process {os.getppid()}"):
        folder.take_over()
