import csv
import io
import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from comparisons import DECISIONS, EVIL, EVIL_DECISIONS, NOW, comparison_of, evil_comparison, row_of
from shared import shared
from withstand.compare.shape import Comparison, Decision, Difference, Method, Objection, Row, Verdict
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.summary import Interval
from withstand.report.comparison import EXPORTERS, render
from withstand.report.comparison_text import print_comparison
from withstand.report.comparison_words import Numbered, faster_by, level, value
from withstand.report.numbers import decimals_of, fixed, signed_percent


def rendered(form: str, comparison: Comparison | None = None) -> str:
    return render(comparison or comparison_of(), form, decisions=DECISIONS, now=NOW)


@pytest.mark.parametrize("form", EXPORTERS)
def test_every_form_takes_every_comparison(form: str) -> None:
    for comparison in (comparison_of(), comparison_of(["a"] * 3, facts=False), evil_comparison()):
        text = render(comparison, form, decisions=EVIL_DECISIONS, now=NOW)
        assert text.endswith("\n")
    empty = msgspec.structs.replace(comparison_of(), groups=(), unmatched=())
    assert isinstance(render(empty, form, now=NOW), str)


def test_a_doubt_about_some_numbers_does_not_take_the_headline_from_the_others() -> None:
    """A red mark stood before "No difference is shown", though the exit code was 0."""
    doubt = Doubt(DoubtKind.CLIENT_BOUND, "Worker 0 used 97 % of a core.", "Use more workers.", blocking=True)
    partly = msgspec.structs.replace(comparison_of(), doubts=(doubt,))
    unknown = msgspec.structs.replace(evil_comparison(), doubts=(doubt,))
    assert [level(one) for one in (comparison_of(forced=True), partly, unknown)] == ["fallen", "doubted", "fallen"]


def test_faster_by_is_what_the_published_tables_show() -> None:
    expected = json.loads(shared("seeds/seed000_expected.json").read_text("utf-8"))
    rows = [row for table in expected["summary"] for row in table["rows"]]
    for row in rows:
        values = [row["vllm_ms"], row["sgl_ms"]]
        made = row_of(("ttft.mean", "Mean TTFT", "ms", True), values, facts=False)
        assert faster_by(made).replace(" ", "") == row["display"]["Faster by (%)"]
        assert ("vllm", "sgl")[made.fastest or 0] == row["display"]["Fastest"]
        shown = [value(made, amount, 2).replace(",", "") for amount in values]
        assert shown == [row["display"]["vllm (ms)"], row["display"]["sgl (ms)"]]
    assert len(rows) == 18


def test_csv_has_a_row_for_each_metric_condition_and_side() -> None:
    comparison = comparison_of()
    rows = list(csv.DictReader(io.StringIO(rendered("csv", comparison))))
    assert len(rows) == sum(len(row.cells) for group in comparison.groups for row in group.rows)
    first, second = rows[:2]
    assert (first["side"], first["baseline"], first["verdict"]) == ("old", "yes", "")
    assert (second["side"], second["metric"], second["verdict"]) == ("new", "ttft.mean", "better")
    assert float(second["difference_percent"]) == pytest.approx(21)
    assert second["request_rate_rps"] == "1"


def test_csv_holds_no_formula_of_a_stranger() -> None:
    comparison = comparison_of(["=cmd|' /C calc'!A0", "+1"])
    rows = list(csv.DictReader(io.StringIO(rendered("csv", comparison))))
    assert {row["side"][0] for row in rows} == {"'"}


def test_json_is_the_comparison_itself() -> None:
    document = json.loads(rendered("json"))
    assert (document["schema"], document["kind"], document["created_utc"]) == (1, "comparison", NOW)
    assert document["groups"][0]["rows"][0]["differences"][1]["verdict"] == "better"
    assert document["decisions"][1]["winner"] is None
    assert msgspec.convert({k: document[k] for k in Comparison.__struct_fields__}, Comparison) == comparison_of()


def test_json_has_no_number_that_json_has_not() -> None:
    comparison = comparison_of()
    row = row_of(("ttft.mean", "Mean TTFT", "ms", True), [float("inf"), float("nan")])
    group = msgspec.structs.replace(comparison.groups[0], rows=(row,))
    text = rendered("json", msgspec.structs.replace(comparison, groups=(group,)))
    assert json.loads(text, parse_constant=pytest.fail)


def test_markdown_reads_from_the_headline_down() -> None:
    text = rendered("markdown")
    assert text.startswith("### old vs. new\n\n**The new one is slower to the first token.**")
    assert text.count("<details>") == text.count("</details>")
    assert "| Mean TTFT, ms | old (baseline) | new | Fastest | Faster by (%) | new against old |" in text
    assert "old | 17.36 % | **faster** +21.0 % (+17.0 to +26.0 %) |" in text
    assert text.index("3 of 100 requests failed.") < text.index("| Mean TTFT")
    assert "Not compared: new, 20 req/s: the other side has no such rate." in text
    assert "[!WARNING]" not in text
    assert "[!WARNING]" in rendered("markdown", comparison_of(forced=True))


def test_every_table_of_the_markdown_is_rectangular() -> None:
    for comparison in (comparison_of(("a", "b", "c")), evil_comparison()):
        text = render(comparison, "markdown", decisions=EVIL_DECISIONS, now=NOW)
        for table in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, table


def test_markdown_has_no_markup_of_a_stranger() -> None:
    text = render(evil_comparison(), "markdown", decisions=EVIL_DECISIONS, now=NOW)
    assert re.search(r"(?<!\\)<(?!/?(details|summary|sup|sub)>)", text) is None


# The llm-d Benchmark Report 0.2, as far as these reports go: fields by their parents, what each must have, its units.
ALLOWED: dict[str, set[str]] = {
    "": {"version", "run", "scenario", "results"},
    "run": {"uid", "eid", "cid", "pid", "time", "user", "description", "keywords"},
    "run.time": {"start", "end", "duration"},
    "scenario": {"stack", "load"},
    "scenario.load": {"metadata", "standardized", "native"},
    "scenario.load.metadata": {"schema_version", "cfg_id", "description"},
    "scenario.load.native": {"args", "envars", "config"},
    "scenario.load.standardized": {
        *("tool", "tool_version", "parallelism", "source", "stage", "input_seq_len", "output_seq_len"),
        *("prefix", "multi_turn", "rate_qps", "concurrency"),
    },
    "results": {"request_performance", "session_performance", "observability", "profiling", "component_health"},
    "results.request_performance": {"aggregate", "time_series"},
    "results.request_performance.aggregate": {"requests", "latency", "throughput"},
    "results.request_performance.aggregate.requests": {
        *("total", "failures", "incomplete", "input_length", "output_length"),
    },
}
REQUIRED = {
    "": {"version", "run", "results"},
    "run": {"uid"},
    "scenario.load": {"metadata", "standardized", "native"},
    "scenario.load.standardized": {"tool", "tool_version", "source", "input_seq_len"},
    "results.request_performance.aggregate.requests": {"total"},
}
UNITS = {
    "time_to_first_token": {"ms", "s"},
    "normalized_time_per_output_token": {"ms/token", "s/token"},
    "time_per_output_token": {"ms/token", "s/token"},
    "inter_token_latency": {"ms/token", "s/token"},
    "request_latency": {"ms", "s"},
    "input_token_rate": {"tokens/s"},
    "output_token_rate": {"tokens/s"},
    "total_token_rate": {"tokens/s"},
    "request_rate": {"queries/s"},
}
STATISTICS = {
    *("units", "mean", "mode", "stddev", "min", "p0p1", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99"),
    *("p99p9", "max"),
}


def reports(text: str) -> list[dict[str, Any]]:
    """The documents of the stream; each is one line of JSON."""
    return [json.loads(part) for part in text.split("---\n")[1:]]


def at(report: Any, path: str) -> Any:
    for name in path.split(".") if path else ():
        report = (report or {}).get(name)
    return report


def check(report: dict[str, Any]) -> None:
    assert report["version"] == "0.2"
    for path, allowed in ALLOWED.items():
        given = set(at(report, path) or {})
        assert given <= allowed, path
        assert not given or REQUIRED.get(path, set()) <= given, path
    for section in ("latency", "throughput"):
        for name, statistics in at(report, f"results.request_performance.aggregate.{section}").items():
            assert statistics["units"] in UNITS[name]
            assert {"units", "mean"} <= set(statistics) <= STATISTICS
            assert all(isinstance(number, float | int) for key, number in statistics.items() if key != "units")
    for component in report["scenario"]["stack"]:
        assert {"label", "cfg_id"} <= set(component["metadata"])
        assert {"kind", "tool", "tool_version"} <= set(component["standardized"])


def test_llmd_reports_keep_to_the_format() -> None:
    found = reports(rendered("llmd"))
    assert len(found) == 14
    assert len({report["run"]["uid"] for report in found}) == 14
    assert len({report["run"]["eid"] for report in found}) == 1
    for report in found:
        check(report)
    second = at(found[1], "results.request_performance.aggregate")
    assert second["requests"] == {"total": 100, "incomplete": 3}
    assert second["latency"]["time_to_first_token"]["units"] == "ms"
    assert second["latency"]["time_to_first_token"]["mean"] == pytest.approx(12.5 * 1.21)
    assert at(found[1], "scenario.load.standardized.rate_qps") == 1


def test_llmd_reports_leave_out_what_is_not_known() -> None:
    comparison = comparison_of()
    groups = tuple(msgspec.structs.replace(group, volumes=()) for group in comparison.groups)
    for report in reports(rendered("llmd", msgspec.structs.replace(comparison, groups=groups))):
        check(report)
        assert "load" not in report["scenario"]
        assert "requests" not in at(report, "results.request_performance.aggregate")
        assert "time" not in report["run"]


def test_llmd_reports_carry_doubts_as_keywords() -> None:
    for report in reports(render(evil_comparison(), "llmd", now=NOW)):
        assert report["run"]["keywords"] == [EVIL, EVIL, "doubt:impossible"]


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5))
def test_the_points_of_a_column_stand_below_each_other(values: list[float]) -> None:
    decimals = decimals_of(values)
    assert len({len(fixed(amount, decimals).partition(".")[2]) for amount in values}) == 1


def test_a_sign_is_always_there() -> None:
    assert [signed_percent(p) for p in (12.34, -12.34, 0.0, 5034.2, None)] == [
        "+12.3 %",
        "\N{MINUS SIGN}12.3 %",
        "+0.0 %",
        "+5,034 %",
        "\N{EN DASH}",
    ]


def test_what_stands_against_a_decision_is_short_and_leads_to_what_is_said_in_full() -> None:
    doubt = Doubt(DoubtKind.ERROR_TEXT, "A long sentence about what the answers said.", "Read some of them.")
    lack = "Too few values: one burst would decide it."
    against = (Objection("Error text at inf", (doubt,)), Objection("Too few values", note=lack))
    decisions = (Decision(wins_for="tail", winner=None, evidence="9 against 8 ms.", against=against),)
    comparison = msgspec.structs.replace(comparison_of(), doubts=(doubt,))
    place = Numbered(comparison).of([doubt])[0]
    text = rendered_text(comparison, decisions)
    assert f"Error text at inf [{place}]. Too few values [" in text
    assert text.count("A long sentence") == text.count("one burst would decide it") == 1
    markdown = render(comparison, "markdown", decisions=decisions, now=NOW)
    assert f"Error text at inf <sup>{place}</sup>. Too few values <sup>a</sup>." in markdown
    assert markdown.count("A long sentence") == markdown.count("one burst would decide it") == 1
    page = render(comparison, "html", decisions=decisions, now=NOW)
    assert f'Error text at inf<sup><a href="#doubt-{place}"' in page
    assert "Too few values<sup>a</sup>" in page


def rendered_text(comparison: Comparison, decisions: Sequence[Decision] = (), width: int = 200) -> str:
    out = io.StringIO()
    print_comparison(comparison, decisions, Console(file=out, width=width))
    return out.getvalue()


def far_off(comparison: Comparison) -> Comparison:
    """As two noisy repeats of a run leave it: intervals that say nothing, and a lack beside every verdict."""

    def spread(row: Row) -> Row:
        wide = Interval(low=-99.99, high=8e7)
        differences = tuple(d and msgspec.structs.replace(d, interval=wide) for d in row.differences)
        return msgspec.structs.replace(row, differences=differences, lacks=("Too few.", f"Of {row.title}."))

    groups = [msgspec.structs.replace(g, rows=tuple(map(spread, g.rows))) for g in comparison.groups[:2]]
    return msgspec.structs.replace(comparison, groups=tuple(groups))


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("labels", [("old", "new"), ("old", "new", "other"), ("基準", "新しい")])
def test_the_terminal_cuts_no_verdict_and_no_number(width: int, labels: tuple[str, ...]) -> None:
    comparison = far_off(comparison_of(labels))
    text = rendered_text(comparison, width=width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert text.count("[") == text.count("]") > 0
    rows = [row for group in comparison.groups for row in group.rows]
    for row in rows:
        assert faster_by(row) in text
    assert "> +1,000" in rendered_text(comparison, width=300)


def test_markdown_says_in_the_cell_what_would_have_been_shown() -> None:
    comparison = comparison_of()
    first, *others = comparison.groups[0].rows
    seen = Difference(percent=0.4, method=Method.BLOCKS, verdict=Verdict.NO_DIFFERENCE, shows_from_percent=3.21)
    row = msgspec.structs.replace(first, differences=(None, seen))
    group = msgspec.structs.replace(comparison.groups[0], rows=(row, *others))
    text = rendered("markdown", msgspec.structs.replace(comparison, groups=(group, *comparison.groups[1:])))
    assert "**no difference shown** (≥ 3.2 %) +0.4 %" in text
