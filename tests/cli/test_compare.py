"""``withstand compare`` as a user meets it."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foreign import VLLM_BLOCK, VLLM_JSON
from shared import shared
from withstand.app.compare import compare_paths
from withstand.app.subjects import sides_of
from withstand.cli.entry import exit_code_of
from withstand.compare.build import Options
from withstand.compare.shape import Comparison, Row
from withstand.testing.truth.process import TruthServer
from withstand.testing.truth.schedule import Schedule

_NAMES = {"mean_ttft_ms": "ttft.mean", "mean_tpot_ms": "tpot.mean", "mean_itl_ms": "itl.mean"}


def _file(path: Path, **changes: Any) -> str:
    whole = {"num_prompts": 90, "request_rate": 3.0}
    path.write_text(json.dumps({**VLLM_JSON, **whole, **changes}))
    return str(path)


def _repeats(folder: Path, name: str, factor: float) -> str:
    paths = [
        _file(folder / f"{name}{i}.json", mean_ttft_ms=50 * factor * (1 + 0.004 * (i - 1)), mean_itl_ms=10.0 + i / 100)
        for i in range(3)
    ]
    return f"{name}={','.join(paths)}"


def test_text_opens_with_what_can_be_concluded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = [_repeats(tmp_path, "old", 1.0), _repeats(tmp_path, "new", 1.2)]
    assert exit_code_of(["compare", *sides]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "new is worse than old in Mean TTFT at 3 req/s, concurrency 8: +20.0 %" in shown
    assert "Runs were repeated: Welch's test" in shown


def test_a_gate_fails_where_a_regression_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = _repeats(tmp_path, "old", 1.0), _repeats(tmp_path, "new", 1.2)
    assert exit_code_of(["compare", "--baseline", old, new, "--fail-if-slower", "5%"]) == 1
    assert "Slower by more than 5 %: Mean TTFT at 3 req/s, concurrency 8 +20.0 %." in capsys.readouterr().err
    assert exit_code_of(["compare", "--baseline", old, new, "--fail-if-slower", "25%"]) == 0
    assert exit_code_of(["compare", new, old, "--fail-if-slower", "5%"]) == 0


def test_of_several_sides_a_gate_names_the_one_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = [_repeats(tmp_path, name, by) for name, by in (("old", 1.0), ("good", 1.0), ("bad", 1.2))]
    assert exit_code_of(["compare", *sides, "--fail-if-slower", "5%"]) == 1
    assert "Slower by more than 5 %: bad: Mean TTFT at" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("limit", "alert"), [("5%", "> [!CAUTION]\n> Slower by"), ("25%", "> [!NOTE]\n> No regression")]
)
def test_what_is_posted_to_a_pull_request_says_whether_it_may_pass(
    limit: str, alert: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gated = [_repeats(tmp_path, "old", 1.0), _repeats(tmp_path, "new", 1.2), "--fail-if-slower", limit]
    for form, told in (("markdown", alert), ("json", '"failed":'), ("html", 'role="note"')):
        exit_code_of(["compare", *gated, "--format", form])
        assert told in capsys.readouterr().out


def test_a_stage_that_is_missing_is_told_by_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [tmp_path / "old", tmp_path / "new"]
    for folder in folders:
        folder.mkdir()
        _file(folder / "three.json")
    _file(folders[0] / "five.json", request_rate=5.0, duration=18.0, request_throughput=5.0)
    assert exit_code_of(["compare", *map(str, folders), "--fail-if-slower", "5%"]) == 0
    assert "1 of what was measured has no equal on the other side" in capsys.readouterr().err


def test_repeats_are_called_by_their_folder_or_by_the_first_of_them(tmp_path: Path) -> None:
    sample = Path(__file__).parents[1] / "runs" / "samples" / "schema-1"
    for name in ("nightly/one", "nightly/two", "other"):
        shutil.copytree(sample, tmp_path / name)
    listed = f"{tmp_path / 'other'},{tmp_path / 'nightly' / 'one'}"
    assert [side.label for side in sides_of([str(tmp_path / "nightly"), listed], None)] == ["nightly", "other +1"]


def test_a_copy_of_a_run_is_no_repeat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = Path(__file__).parents[1] / "runs" / "samples" / "schema-1"
    for name in ("nightly/one", "nightly/two", "other"):
        shutil.copytree(sample, tmp_path / name)
    assert exit_code_of(["compare", str(tmp_path / "nightly"), str(tmp_path / "other")]) == 2
    told = capsys.readouterr().err
    assert told.startswith("withstand: nightly holds one run twice")
    assert len(told.splitlines()) == 1


def test_a_baseline_is_not_compared_with_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = _repeats(tmp_path, "old", 1.0), _repeats(tmp_path, "new", 1.2)
    bare = old.removeprefix("old=")
    assert exit_code_of(["compare", "--baseline", old, bare, new, "--format", "json"]) == 0
    shown = capsys.readouterr()
    assert f"{old} is the baseline and is not compared with itself." in shown.err
    assert [side["label"] for side in json.loads(shown.out)["sides"]] == ["old", "new"]


def test_a_gate_says_when_the_data_could_not_have_shown_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = _file(tmp_path / "a.json"), _file(tmp_path / "b.json", mean_ttft_ms=500.0)
    assert exit_code_of(["compare", one, other, "--fail-if-slower", "5"]) == 0
    assert "could not have shown one of 5 % anywhere" in capsys.readouterr().err


def test_other_conditions_are_refused_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = _file(tmp_path / "a.json"), _file(tmp_path / "b.json", model_id="other/model")
    assert exit_code_of(["compare", one, other]) == 2
    told = capsys.readouterr().err
    assert told.startswith("withstand: a.json and b.json are not comparable at 3 req/s, concurrency 8: model")
    assert len(told.splitlines()) == 1


def test_forced_it_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = _file(tmp_path / "a.json"), _file(tmp_path / "b.json", model_id="other/model")
    assert exit_code_of(["compare", one, other, "--force"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Forced, conditions differ" in shown
    assert "Forced, not comparable with b.json: model some/model against other/model." in shown


@pytest.mark.parametrize("form", ["json", "markdown", "csv", "html", "llmd"])
def test_every_form_can_be_had(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = _file(tmp_path / "a.json"), _file(tmp_path / "b.json")
    assert exit_code_of(["compare", one, other, "--format", form]) == 0
    assert "a.json" in capsys.readouterr().out


def test_a_file_s_ending_tells_its_form(tmp_path: Path) -> None:
    one, other = _file(tmp_path / "a.json"), _file(tmp_path / "b.json")
    output = tmp_path / "comparison.html"
    assert exit_code_of(["compare", one, other, "--output", str(output)]) == 0
    assert "<html" in output.read_text()


@pytest.mark.parametrize("percent", ["-1", "x", "nan", "5%%x"])
def test_no_percentage_is_told(percent: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = _file(tmp_path / "a.json")
    assert exit_code_of(["compare", one, one, "--fail-if-slower", percent]) == 2
    assert "is no percentage" in capsys.readouterr().err


def test_names_from_files_do_nothing_to_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b[31m[red]evil\n"
    files = [_file(tmp_path / f"{i}.json", model_id=evil, dataset_name=evil) for i in range(2)]
    assert exit_code_of(["compare", *files]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "[red]evil" in shown


def test_the_length_for_an_aim_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = [_repeats(tmp_path, "old", 1.0), _repeats(tmp_path, "new", 1.001)]
    assert exit_code_of(["compare", *sides, "--metric", "ttft", "--aim", "0.1%", "--negligible", "0"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "runs of each to show 0.1 %" in shown
    assert exit_code_of(["compare", *sides, "--metric", "ttft", "--aim", "20%"]) == 0
    assert "to show 20 %" not in capsys.readouterr().out


def test_own_runs_are_compared_with_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, ttft_ms in (("fast", 10.0), ("slow", 150.0)):
        with TruthServer(Schedule(ttft_ms=ttft_ms, itl_ms=2, tokens=5, ttft_jitter="uniform:4")) as server:
            load = ["--request-rate", "40", "--num-prompts", "80", "--quiet"]
            target = ["--base-url", server.base_url, "--output-len", "5", "--input-len", "16"]
            assert exit_code_of(["run", *target, *load, "--output-dir", str(tmp_path / name)]) in {0, 3}
    capsys.readouterr()
    comparison = compare_paths([str(tmp_path / "fast"), str(tmp_path / "slow")], None, Options())
    row = _row(comparison, "40 req/s", "ttft.mean")
    assert row.fastest == 0
    assert row.differences[1] is not None
    assert row.differences[1].method == "blocks"
    assert row.differences[1].percent is not None
    assert row.differences[1].percent > 10


def _row(comparison: Comparison, group: str, metric: str) -> Row:
    groups = [g for g in comparison.groups if g.label == group]
    return next(row for row in groups[0].rows if row.metric == metric)


def test_the_published_table_comes_out_as_displayed_and_is_not_believed() -> None:
    expected = msgspec.json.decode(shared("seeds/seed000_expected.json").read_bytes())
    comparison = compare_paths([str(shared("seeds/seed000_results.jsonl"))], "framework", Options())
    assert [side.label for side in comparison.sides] == ["vllm", "sgl"]
    seen = 0
    for table in expected["summary"]:
        for line in table["rows"]:
            rate = line["request_rate"]
            row = _row(comparison, "inf" if rate == "infinite" else f"{rate:g} req/s", _NAMES[table["metric"]])
            shown = line["display"]
            assert [f"{cell.value:.2f}" for cell in row.cells] == [shown["vllm (ms)"], shown["sgl (ms)"]]
            assert row.fastest is not None
            assert comparison.sides[row.fastest].label == shown["Fastest"]
            assert f"{row.faster_by_percent:.2f}%" == shown["Faster by (%)"]
            assert row.differences[1] is not None
            assert row.differences[1].verdict == "unknown"
            assert row.remark is not None
            assert "aggregates only" in row.remark.casefold()
            seen += 1
    assert seen == 18


def test_the_published_table_is_printed_in_eighty_columns_row_by_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, expected = shared("seeds/seed000_results.jsonl"), shared("seeds/seed000_expected.json")
    monkeypatch.setenv("COLUMNS", "80")
    assert exit_code_of(["compare", str(path)]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    lines = [line.replace("?", " ").replace(",", "").split() for line in shown.splitlines()]
    for table in msgspec.json.decode(expected.read_bytes())["summary"]:
        for row in table["rows"]:
            said = row["display"]
            by = said["Faster by (%)"].removesuffix("%")
            load = "inf" if said["request_rate"] in {"infinite", "inf"} else f"{float(said['request_rate']):g}"
            wanted = [said["vllm (ms)"], said["sgl (ms)"], said["Fastest"], by, "%", "unknown"]
            assert [line for line in lines if line[:1] == [load] and " ".join(wanted) in " ".join(line)], wanted
    assert "unknown = aggregates only" in shown


def test_blocks_under_headings_are_sides_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "gateways.txt"
    log.write_text(f"## Rust\n{VLLM_BLOCK}\n## golang\n{VLLM_BLOCK}")
    assert exit_code_of(["compare", str(log)]) == 0
    assert "Rust vs. golang" in capsys.readouterr().out
    alike = tmp_path / "one.txt"
    alike.write_text(f"## Rust\n{VLLM_BLOCK}\n{VLLM_BLOCK}")
    assert exit_code_of(["compare", str(alike)]) == 2
    assert "is one side" in capsys.readouterr().err


def test_of_a_course_the_terminal_has_a_table_for_each_metric(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        lines = [{**VLLM_JSON, "num_prompts": 90, "request_rate": rate} for rate in (3.0, 6.0, 12.0)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    paths = [str(tmp_path / f"{name}.jsonl") for name in ("a", "b")]
    assert exit_code_of(["compare", *paths]) == 0
    course = capsys.readouterr().out
    assert "Mean TTFT  ms, lower is better" in course
    assert "Also compared: Request throughput" in course
    assert exit_code_of(["compare", *paths, "--metric", "request_throughput"]) == 0
    assert "Request throughput  req/s, higher is better" in capsys.readouterr().out


def test_long_names_of_sides_are_letters_in_the_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    paths = [_file(tmp_path / f"{name}-of-a-very-long-name.json") for name in ("one", "other")]
    assert exit_code_of(["compare", *paths]) == 0
    shown = capsys.readouterr().out
    assert "A = one-of-a-very-long-name.json  baseline" in shown
    assert "B = other-of-a-very-long-name.json" in shown
    assert [line for line in shown.splitlines() if line.split()[:3] == ["A", "B", "fastest"]]
    below = shown.partition("B = other-of-a-very-long-name.json")[2].replace(str(tmp_path), "")
    assert "very-long-name" not in below.partition("\n\n")[2]


def test_what_the_published_table_hides_is_said() -> None:
    comparison = compare_paths([str(shared("seeds/seed000_results.jsonl"))], None, Options())
    assert "1,015 of 2,000" in (_row(comparison, "inf", "ttft.mean").remark or "")
    for rate in ("30 req/s", "35 req/s"):
        remark = _row(comparison, rate, "ttft.mean").remark or ""
        assert "requests a second were achieved" in remark


def test_two_engines_measured_with_one_schedule_are_told_apart() -> None:
    sides = [shared(f"h100/{name}_rate30.json.gz") for name in ("vllm0.26", "sglang0.5.14")]
    comparison = compare_paths([str(side) for side in sides], None, Options())
    row = _row(comparison, "30 req/s", "tpot.mean")
    assert row.differences[1] is not None
    assert row.differences[1].verdict == "worse"


@pytest.mark.parametrize("by", ["heading", "position"])
def test_of_other_work_no_times_faster_is_said(by: str) -> None:
    comparison = compare_paths([str(shared("seeds/seed003_raw.txt"))], by, Options())
    for metric in ("e2el.mean", "output_throughput", "tpot.mean", "input_throughput"):
        row = _row(comparison, "20 req/s, concurrency 20", metric)
        assert (row.fastest, row.faster_by_percent) == (None, None)
        assert row.differences[1] is not None
        assert row.differences[1].percent is None
    assert _row(comparison, "20 req/s, concurrency 20", "ttft.mean").fastest is not None
    assert any("did not do the same work" in doubt.sentence for doubt in comparison.doubts)
    assert comparison.headline.startswith("Nothing can be concluded. The sides did not do the same work.")


@pytest.mark.parametrize("metric", ["foo", "ttft,foo", "ttft.p42"])
def test_a_gate_does_not_pass_for_a_metric_that_nobody_tells(
    metric: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [_repeats(tmp_path, "old", 1.0), _repeats(tmp_path, "new", 1.2)]
    assert exit_code_of(["compare", *sides, "--metric", metric, "--metric", "ttft", "--fail-if-slower", "5%"]) == 2
    assert f"No side tells of {metric}; there are ttft, " in capsys.readouterr().err


def test_an_aim_of_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["compare", str(tmp_path), "--aim", "0"]) == 2
    assert "--aim" in capsys.readouterr().err


def test_every_number_that_an_aim_is_too_small_for_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [_repeats(tmp_path, "old", 1.0), _repeats(tmp_path, "new", 1.001)]
    assert exit_code_of(["compare", *sides, "--aim", "0.01%"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "measure longer: – Mean TTFT at" in shown  # noqa: RUF001
    assert "more" not in shown.partition("measure longer:")[2].partition("Runs were")[0]
