"""What lies at a path, told by every verb: folders of runs, imports, links, and what is no run at all."""

import json
import os
import shutil
from pathlib import Path

import pytest

from foreign import VLLM_JSON
from withstand.app.measured import measured_at
from withstand.cli.entry import exit_code_of
from withstand.errors import StorageError

SAMPLE = Path(__file__).parents[1] / "runs" / "samples" / "schema-1"
DAMAGED = ("{", "[" * 100_000)
VERBS = (["audit"], ["audit", "--format", "json"], ["report"], ["report", "--format", "html"], ["compare"])


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A folder with one run of ours."""
    shutil.copytree(SAMPLE, tmp_path / "top" / "a1")
    return tmp_path / "top"


def imported(path: Path) -> Path:
    result = path.with_name(f"{path.name}.json")
    result.parent.mkdir(exist_ok=True)
    result.write_text(json.dumps(VLLM_JSON), "utf-8")
    assert exit_code_of(["import", str(result), "--output-dir", str(path)]) == 0
    result.unlink()
    return path


def names(path: Path) -> list[str]:
    return [one.path.name for one in measured_at(path)]


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = exit_code_of([*argv])
    shown = capsys.readouterr()
    assert "fault of withstand" not in shown.err
    return code, shown.out, shown.err


def test_imports_below_a_folder_are_found_beside_runs(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imported(top / "imp")
    assert names(top) == ["a1", "imp"]
    capsys.readouterr()
    assert "2 files: " in told(capsys, "audit", str(top))[1]
    assert ",imp/" in told(capsys, "report", str(top), "--format", "csv")[1]


def test_a_folder_of_imports_is_shown(tmp_path: Path) -> None:
    for name in ("i", "j"):
        imported(tmp_path / "all" / name)
    assert names(tmp_path / "all") == ["i", "j"]
    assert exit_code_of(["report", str(tmp_path / "all")]) == 0


def test_what_was_refused_beside_runs_is_told(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (top / "cut.json").write_text(json.dumps(VLLM_JSON)[:-20], "utf-8")
    code, text, _ = told(capsys, "audit", str(top))
    assert code == 0
    assert "Left out: cut.json line 1: " in text
    assert "- Left out: cut.json line 1: " in told(capsys, "audit", str(top), "--format", "markdown")[1]
    assert "Left out, cut.json line 1: " in told(capsys, "report", str(top))[2]


def test_links_to_runs_are_followed(top: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a2").symlink_to("../top/a1")
    (tmp_path / "links" / "loop").symlink_to("..")
    assert names(tmp_path / "links") == ["a2"]


def test_a_pipe_and_a_link_to_nowhere_are_no_manifests(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("pipe", "gone"):
        (top / name).mkdir()
    os.mkfifo(top / "pipe" / "run.json")
    (top / "gone" / "run.json").symlink_to("nowhere")
    assert names(top) == ["a1"]
    assert told(capsys, "report", str(top))[0] == 0


@pytest.mark.parametrize("verb", VERBS)
def test_names_that_are_no_text(verb: list[str], top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(SAMPLE, os.fsdecode(os.fsencode(top) + b"/x\xff"))
    shutil.rmtree(top / "a1")  # of which it is a copy
    paths = [str(SAMPLE), str(top)] if verb[0] == "compare" else [str(top)]
    code, text, _ = told(capsys, *verb, *paths)
    assert code == 0
    assert text.encode()


@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_damaged_run_does_not_hide_the_others(damaged: str, top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (top / "bad").mkdir()
    (top / "bad" / "run.json").write_text(damaged, "utf-8")
    code, text, said = told(capsys, "report", str(top))
    assert code == 3
    assert "rate-4" in text
    assert f"{top / 'bad' / 'run.json'} is damaged" in said
    code, text, _ = told(capsys, "audit", str(top))
    assert code == 3
    assert "1 stands" in text or "1 cannot be known" in text
    code, _, said = told(capsys, "compare", str(top / "a1"), str(top))
    assert code == 3
    assert f"Take {top / 'bad'} away" in said


def test_an_import_that_is_damaged_is_one_sentence(tmp_path: Path) -> None:
    path = imported(tmp_path / "imp")
    for content in DAMAGED:
        (path / "imported.json").write_text(content, "utf-8")
        (one,) = measured_at(path)
        with pytest.raises(StorageError, match="import the files again"):
            one.read()


def test_another_tools_file_of_this_name_is_read_as_its_result(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign = top / "foreign"
    shutil.copytree(SAMPLE, foreign / "below")
    (foreign / "run.json").write_text(json.dumps(VLLM_JSON), "utf-8")
    assert [one.path for one in measured_at(foreign)] == [foreign / "below", foreign]
    assert told(capsys, "report", str(top))[0] == 0
    assert "its run.json is of another tool" in told(capsys, "run", "--resume", str(foreign))[2]


@pytest.mark.parametrize("verb", [["audit"], ["report"], ["import", "--output-dir", "x"], ["compare", "a"]])
def test_an_empty_path_is_refused(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = told(capsys, *verb, "")
    assert code == 2
    assert "empty path" in said
    assert said.count("\n") == 1
