"""``withstand report``: a folder in, each format out."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from foreign import VLLM_JSON
from withstand.cli.entry import exit_code_of

SAMPLE = Path(__file__).parents[1] / "runs" / "samples" / "schema-1"


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert exit_code_of(["report", *argv]) == 0
    return capsys.readouterr().out


def test_text_has_each_stages_block_and_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, str(SAMPLE))
    assert text.count("Serving Benchmark Result") == 2
    assert "rate-4" in text
    assert "concurrency-2" in text
    assert "warm-up\n" not in text


def test_sglangs_block(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Backend:" in printed(capsys, str(SAMPLE), "--style", "sglang")


def test_the_token_ledger_is_there_to_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert "tokens by" not in printed(capsys, str(SAMPLE))
    assert "tokens by" in printed(capsys, str(SAMPLE), "--tokens")


def test_markdown_has_the_ledger_if_asked_and_what_cannot_have_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert "| tokens by |" in printed(capsys, str(SAMPLE), "--tokens", "--format", "markdown")
    for form in ("csv", "json", "html"):
        assert exit_code_of(["report", str(SAMPLE), "--tokens", "--format", form]) == 2
        assert f"--tokens is for text and Markdown; {form} " in capsys.readouterr().err


def test_the_clients_error_is_no_wider_than_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = printed(capsys, str(SAMPLE)).splitlines()
    below_the_block = lines[lines.index("=" * 50) + 1 :]
    assert below_the_block[0].startswith("client error: ")
    assert max(map(len, below_the_block[:3])) <= 60


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    summary = json.loads(printed(capsys, str(SAMPLE), "--format", "json"))
    assert [s["completed"] for s in summary["stages"]] == [12, 6]


def test_csv_and_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(printed(capsys, str(SAMPLE), "--format", "csv"))))
    assert [row["completed"] for row in rows] == ["12", "6"]
    assert "| " in printed(capsys, str(SAMPLE), "--format", "markdown")


@pytest.mark.parametrize(
    ("name", "begins"), [("r.json", "{"), ("r.html", "<!"), ("r.md", "**"), ("r.txt", "rate-4\n=")]
)
def test_a_files_ending_chooses_the_format(
    name: str, begins: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(capsys, str(SAMPLE), "--output", str(tmp_path / name)) == ""
    assert (tmp_path / name).read_text("utf-8").lstrip().startswith(begins)


def test_several_runs_stand_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        shutil.copytree(SAMPLE, tmp_path / name)
    summary = json.loads(printed(capsys, str(tmp_path / "one"), str(tmp_path / "two"), "--format", "json"))
    names = [s["name"] for s in summary["stages"]]
    assert names == ["one/rate-4", "one/concurrency-2", "two/rate-4", "two/concurrency-2"]


def test_a_path_that_is_no_run_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "result.json").write_text("{}", "utf-8")
    for path in (tmp_path, tmp_path / "result.json", tmp_path / "missing"):
        assert exit_code_of(["report", str(path)]) == 2
        said = capsys.readouterr().err
        assert f"withstand: {path} is no run folder" in said
        assert said.count("\n") == 1


def test_an_output_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["report", str(SAMPLE), "--output", "/dev/null/x.json"]) == 2
    assert "there is no folder" in capsys.readouterr().err
    too_long = f"/{'n' * 300}/x/x.json"
    assert exit_code_of(["report", str(SAMPLE), "--output", too_long]) == 2
    assert f"--output {too_long}: " in (said := capsys.readouterr().err)
    assert "cannot be read: File name too long." in said


def test_a_cut_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(SAMPLE, tmp_path / "cut")
    manifest = tmp_path / "cut" / "run.json"
    manifest.write_text(manifest.read_text("utf-8").replace('"state": "done"', '"state": "running"'), "utf-8")
    with (tmp_path / "cut" / "records.w0.jsonl").open("ab") as file:
        file.write(b"{broken\n{broken\n")
    assert exit_code_of(["report", str(tmp_path / "cut"), "--format", "json"]) == 0
    shown = capsys.readouterr()
    assert "killed or crashed; 0 of 2 stages complete" in shown.err
    assert "Left out: 2 lines of the records, damaged or cut off." in shown.err
    assert json.loads(shown.out)["complete"] is False


def test_what_tokens_cost_in_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert "per 1M output" not in printed(capsys, str(SAMPLE))
    priced = [str(SAMPLE), "--price-per-hour", "3.6"]
    assert "per 1M output" in printed(capsys, *priced)
    assert "| per 1M output |" in printed(capsys, *priced, "--format", "markdown")
    assert '<section id="costs">' in printed(capsys, *priced, "--format", "html")
    (first, _) = json.loads(printed(capsys, *priced, "--format", "json"))["stages"]
    assert first["cost"]["price_per_hour"] == 3.6
    (row, _) = csv.DictReader(io.StringIO(printed(capsys, *priced, "--format", "csv")))
    assert float(row["price_per_1m_output_tokens"]) == first["cost"]["per_million_output"]


@pytest.mark.parametrize("price", ["0", "-1", "nan", "inf", "much"])
def test_what_is_no_price_is_refused(price: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["report", str(SAMPLE), "--price-per-hour", price]) == 2
    assert "a price is a number above 0" in capsys.readouterr().err


def test_a_folder_knows_the_price_that_its_run_was_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, price in (("cheap", 1.0), ("dear", 4.0)):
        shutil.copytree(SAMPLE, tmp_path / name)
        manifest = json.loads((tmp_path / name / "run.json").read_text("utf-8"))
        manifest["plan"]["price_per_hour"] = price
        (tmp_path / name / "run.json").write_text(json.dumps(manifest), "utf-8")
    folders = [str(tmp_path / "cheap"), str(tmp_path / "dear")]
    stages = json.loads(printed(capsys, *folders, "--format", "json"))["stages"]
    assert [s["cost"]["price_per_hour"] for s in stages] == [1.0, 1.0, 4.0, 4.0]
    stages = json.loads(printed(capsys, *folders, "--price-per-hour", "2", "--format", "json"))["stages"]
    assert {s["cost"]["price_per_hour"] for s in stages} == {2.0}


def _engines(folder: Path) -> str:
    lines = [VLLM_JSON | {"framework": name, "request_rate": rate} for name in ("a", "b") for rate in (5.0, 9.0)]
    path = folder / "results.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return str(path)


def test_an_imported_page_tells_failures_that_the_file_only_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = printed(capsys, _engines(tmp_path), "--format", "html")
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert [stage["statuses"] for stage in data["stages"]] == [{"ok": 90, "not completed": 10}] * 4
    assert [stage["phase"] for stage in data["stages"]] == ["a", "a", "b", "b"]
    assert '<main class="aggregates">' in page
    assert "2025-01-01 12:00:00" in page


def test_engines_of_one_file_stand_apart_and_their_name_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line.split() for line in printed(capsys, _engines(tmp_path)).splitlines()]
    firsts = [line[0] for line in lines if line and line[0] in {"a", "b", "rate-5", "rate-9"}]
    assert firsts == ["a", "rate-5", "rate-9", "b", "rate-5", "rate-9"]


def test_a_page_with_every_request_hides_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert '<main class="">' in printed(capsys, str(SAMPLE), "--format", "html")


def test_the_setting_of_a_file_is_what_its_runs_have_in_common(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setting = (
        printed(capsys, _engines(tmp_path), "--format", "html").split('id="circumstances"')[1].split("</section>")[0]
    )
    assert "some/model" in setting
    assert "request_rate" not in setting


def test_of_a_folder_of_runs_each_has_its_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("r0", "r1"):
        shutil.copytree(SAMPLE, tmp_path / name)
    assert exit_code_of(["report", str(tmp_path), "--format", "json"]) == 0
    stages = json.loads(capsys.readouterr().out)["stages"]
    names = ["r0/rate-4", "r0/concurrency-2", "r1/rate-4", "r1/concurrency-2"]
    assert [stage["name"] for stage in stages] == names
    assert all(stage["facts"] for stage in stages)


def test_an_ending_that_no_form_has_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["report", str(SAMPLE), "--output", str(tmp_path / "o.pdf")]) == 2
    assert "no form ends in .pdf" in capsys.readouterr().err
    assert exit_code_of(["report", str(SAMPLE), "--output", str(tmp_path / "o.pdf"), "--format", "text"]) == 0


def test_what_names_neither_model_nor_target_is_called_by_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "friday.json"
    path.write_text(json.dumps({k: v for k, v in VLLM_JSON.items() if k != "model_id"}))
    assert exit_code_of(["report", str(path)]) == 0
    assert capsys.readouterr().out.strip().startswith("friday.json")
