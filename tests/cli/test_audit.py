"""``withstand audit``: any file in, what may be concluded out, and an exit code to build on."""

import json
import os
import shutil
from pathlib import Path

import pytest

from foreign import VLLM_BLOCK, VLLM_JSON
from withstand.cli.entry import exit_code_of

SAMPLE = Path(__file__).parents[1] / "runs" / "samples" / "schema-1"
GOOD = VLLM_JSON | {
    "num_prompts": 400, "completed": 400, "duration": 80.0, "total_input_tokens": 4000, "total_output_tokens": 20_000,
    "request_throughput": 5.0, "output_throughput": 250.0, "total_token_throughput": 300.0,
}  # fmt: skip


def audited(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> tuple[int, str]:
    code = exit_code_of(["audit", *map(str, argv)])
    return code, capsys.readouterr().out


def written(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def test_a_run_of_ours_stands(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = audited(capsys, SAMPLE)
    assert code == 0
    assert " STANDS " in text
    assert "rate-4" in text


def test_a_run_that_has_lost_records_does_not_stand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = shutil.copytree(SAMPLE, tmp_path / "cut")
    os.truncate(cut / "records.jsonl.gz", 1500)
    code, text = audited(capsys, cut)
    assert code == 1
    assert "have no record that can be read" in text
    assert "Left out: 1 line of the records, damaged or cut off." in text


def test_a_good_file_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = audited(capsys, written(tmp_path / "good.json", GOOD))
    assert code == 0
    assert "can be quoted" in text


def test_a_file_of_survivors_does_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "bad.json", GOOD | {"num_prompts": 800})
    code, text = audited(capsys, file)
    assert code == 1
    assert " DOES NOT STAND " in text
    assert "800 - 400 = 400" in text


def test_what_cannot_be_read_is_told_and_the_others_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture, good = tmp_path / "picture.png", written(tmp_path / "good.json", GOOD)
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    code, text = audited(capsys, picture, good)
    assert code == 3
    assert "no result file" in " ".join(text.split())
    assert " STANDS " in text


def test_json_has_every_claim(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = audited(capsys, written(tmp_path / "b.txt", VLLM_BLOCK), "--format", "json")
    (file,) = json.loads(text)["files"]
    assert code == 1
    claims = {finding["claim"]: finding["standing"] for finding in file["cases"][0]["findings"]}
    assert claims["tokens"] == "falls"
    assert claims["success"] == "stands"


def test_markdown_and_output_by_ending(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = audited(capsys, SAMPLE, "--output", tmp_path / "audit.md")
    assert (code, printed) == (0, "")
    assert (tmp_path / "audit.md").read_text("utf-8").startswith("### schema-1: stands")


def test_several_files_are_held_against_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    longer = GOOD | {"total_output_tokens": 40_000, "output_throughput": 500.0, "total_token_throughput": 550.0}
    longer |= {"model_id": "other/model"}
    one, two = written(tmp_path / "a.json", GOOD), written(tmp_path / "b.json", longer)
    _, text = audited(capsys, one, two)
    told = " ".join(text.split())
    assert "Between the 2 files" in told
    assert "100 / 50 = 2.00" in told
    assert "some/model, other/model" in told


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_what_a_file_calls_itself_is_text(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = GOOD | {"framework": "[red]\x1b[31m<script>|x"}
    _, text = audited(capsys, written(tmp_path / "evil.json", [evil, evil]), "--format", form)
    assert "\x1b" not in text
    assert form == "text" or "<script>" not in text.replace("\\<script\\>", "")


@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_no_number_is_cut_where_it_is_narrow(
    width: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    _, text = audited(capsys, written(tmp_path / "good.json", GOOD))
    for shown in ("50.00 ✓", "80.25 ✓", "5.00 ✓", "250.0 ✓", "100.0 ✓"):
        assert shown in text


def test_a_cut_run_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(SAMPLE, tmp_path / "cut")
    manifest = tmp_path / "cut" / "run.json"
    manifest.write_text(manifest.read_text("utf-8").replace('"state": "done"', '"state": "running"'), "utf-8")
    _, text = audited(capsys, tmp_path / "cut")
    assert "killed or crashed" in " ".join(text.split())


def test_of_a_folder_each_run_is_judged_by_its_facts_and_what_lies_beside_them_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("monday/r0", "monday/r1"):
        shutil.copytree(SAMPLE, tmp_path / name)
    written(tmp_path / "vllm.json", GOOD)
    (tmp_path / ".git").mkdir()
    written(tmp_path / ".git" / "vllm.json", GOOD)
    code, text = audited(capsys, tmp_path)
    assert code == 0
    assert text.count("withstand, 2 stages, with facts") == 2
    assert text.count("vLLM JSON, 1 run,") == 1
    assert "3 files: 3 stand." in text


def test_a_damaged_run_of_a_folder_is_told_and_the_others_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("r0", "r1"):
        shutil.copytree(SAMPLE, tmp_path / name)
    written(tmp_path / "r0" / "run.json", "{")
    code, text = audited(capsys, tmp_path)
    assert code == 3
    assert "withstand, 2 stages, with facts" in text
    assert "r0/run.json is damaged" in " ".join(text.split())
