import json
from pathlib import Path
from typing import Any

import pytest

from withstand.errors import StorageError
from withstand.report.write import write_reports


def written(folder: Path, sample: Any) -> Path:
    return write_reports(folder, sample.summary, sample.series, sample.about)


def test_both_files_are_there_and_nothing_else(tmp_path: Path, single: Any) -> None:
    report = written(tmp_path, single)
    assert report == tmp_path / "report.html"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "summary.json"]
    assert json.loads((tmp_path / "summary.json").read_bytes())["stages"][0]["name"] == "rate-4"


def test_the_report_leads_to_the_board_that_lies_beside_it(tmp_path: Path, single: Any) -> None:
    assert 'href="board.html"' not in written(tmp_path, single).read_text("utf-8")
    (tmp_path / "board.html").write_text("")
    assert 'href="board.html"' in written(tmp_path, single).read_text("utf-8")


def test_an_older_report_is_replaced(tmp_path: Path, single: Any) -> None:
    (tmp_path / "report.html").write_text("old")
    assert "<h1>" in written(tmp_path, single).read_text("utf-8")


def test_a_folder_that_is_not_there_is_said_with_a_cure(tmp_path: Path, single: Any) -> None:
    with pytest.raises(StorageError, match=r"summary\.json cannot be written: No such file.*Choose a folder"):
        written(tmp_path / "gone", single)


def test_what_cannot_be_replaced_leaves_no_rubbish(tmp_path: Path, single: Any) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(StorageError, match=r"report\.html cannot be written"):
        written(tmp_path, single)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "summary.json"]
