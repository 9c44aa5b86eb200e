"""``withstand import``, and ``withstand report`` on other tools' files, as a user meets them."""

import json
from pathlib import Path

import pytest

from foreign import DETAILED, VLLM_BLOCK, VLLM_JSON
from withstand.cli.entry import exit_code_of


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results.json"
    path.write_text(json.dumps([VLLM_JSON, DETAILED]))
    return path


def test_a_foreign_file_is_reported_with_its_doubts(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["report", str(results)]) == 0
    shown = capsys.readouterr().out
    assert "The numbers do not stand" in shown
    assert "100 - 90 = 10" in shown
    assert "results.json: vLLM JSON, 2 runs, with the facts of 1 run" in shown


@pytest.mark.parametrize(
    ("form", "holds"),
    [
        ("json", '"facts": false'),
        ("markdown", "sgl rate-5 conc-8"),
        ("csv", "sgl rate-5 conc-8"),
        ("html", "<html"),
    ],
)
def test_every_format_takes_a_foreign_file(
    results: Path, form: str, holds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(["report", str(results), "--format", form]) == 0
    assert holds in capsys.readouterr().out


def test_what_came_from_a_file_is_escaped_in_html(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "evil.json"
    evil = "<script>alert(1)</script>"
    path.write_text(json.dumps(VLLM_JSON | {"framework": evil, "model_id": evil, "backend": evil, "x": evil}))
    assert exit_code_of(["report", str(path), "--format", "html"]) == 0
    assert evil not in capsys.readouterr().out
    assert exit_code_of(["report", str(path)]) == 0


def test_an_import_is_a_folder_that_report_shows(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "console.log"
    log.write_text(VLLM_BLOCK)
    kept = tmp_path / "kept"
    assert exit_code_of(["import", str(results), str(log), "--output-dir", str(kept)]) == 0
    assert "The same run stands also in console.log" in capsys.readouterr().out
    assert sorted(path.name for path in kept.iterdir()) == ["imported.json", "records-2.jsonl.gz"]
    assert exit_code_of(["report", str(kept), "--format", "json"]) == 0
    stages = json.loads(capsys.readouterr().out)["stages"]
    assert [stage["facts"] for stage in stages] == [False, True]
    assert stages[1]["statuses"] == {"ok": 2, "refused": 1}
    assert exit_code_of(["import", str(results), "--output-dir", str(kept)]) == 2


def test_a_foreign_file_stands_beside_another(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "console.log"
    log.write_text(VLLM_BLOCK)
    assert exit_code_of(["report", str(results), str(log), "--format", "csv"]) == 0
    assert "console.log/" in capsys.readouterr().out


def test_what_is_no_result_is_a_sentence_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing\n")
    assert exit_code_of(["report", str(path)]) == 2
    assert capsys.readouterr().err.startswith(
        f"withstand: {path} is no run folder, and holds no result of another tool"
    )
    assert exit_code_of(["report", str(tmp_path / "nowhere")]) == 2
    assert exit_code_of(["import", str(path), "--output-dir", str(tmp_path / "x")]) == 2


def test_runs_without_a_count_are_shown_in_text_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "table.txt"
    path.write_text("GenAI-Perf\n│ Statistic │ avg │ p99 │\n│ Request latency (ms) │ 5.00 │ 6.00 │\n")
    assert exit_code_of(["report", str(path)]) == 0
    told = capsys.readouterr()
    assert "Without a count of requests" in told.out
    assert "shown in text only" in told.err


def test_a_file_that_is_no_result_does_not_keep_the_others_out(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}", "utf-8")
    assert exit_code_of(["import", str(other), str(results), "--output-dir", str(tmp_path / "kept")]) == 3
    assert f"Left out: {other} is no run folder, and holds no result" in capsys.readouterr().err
    assert exit_code_of(["report", str(tmp_path / "kept")]) == 0
    assert exit_code_of(["import", str(other), str(other), "--output-dir", str(tmp_path / "none")]) == 2
    assert not (tmp_path / "none").exists()


def test_no_line_is_longer_than_the_terminal(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert exit_code_of(["report", str(results)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Read as defined by their tools, which is not quite ours:" in lines
    assert max(map(len, lines)) <= 60


def test_a_catalogue_that_quotes_other_files_is_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "INDEX.json"
    path.write_text(json.dumps([{"file": f"{i}.json", "expected": [VLLM_JSON]} for i in range(3)]))
    assert exit_code_of(["import", str(path), "--output-dir", str(tmp_path / "kept")]) == 2
    said = capsys.readouterr().err
    assert "a catalogue that quotes what stands in other files" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "kept").exists()
