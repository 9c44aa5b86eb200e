"""Narrow terminals: what a wide one shows is all there, and whole."""

import io
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from comparisons import comparison_of
from withstand.audit.judge import judge_all, judge_file
from withstand.audit.shape import Claim, Subject, Value
from withstand.compare.shape import Comparison
from withstand.metrics.cost import priced
from withstand.metrics.reach import Circumstances
from withstand.report.audit_text import print_audit
from withstand.report.comparison_text import print_comparison
from withstand.report.comparison_words import difference_interval
from withstand.report.folding import folded, text_column
from withstand.report.terminal import print_report
from withstand.spec import Price

Print = Callable[[Console], None]
narrow = pytest.mark.parametrize("width", [50, 60, 70])


def printed(show: Print, width: int) -> str:
    out = io.StringIO()
    show(Console(file=out, width=width))
    return out.getvalue()


def numbers(text: str) -> set[str]:
    return {word for word in text.split() if any(map(str.isdigit, word))}


def assert_whole(show: Print, width: int) -> str:
    """No number and no name is cut or left out; the text, for more to be asked of it."""
    text = printed(show, width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert numbers(printed(show, 300)) <= numbers(text)
    assert "…" not in text
    return text


def sides_of(labels: Sequence[str], *, facts: bool = True) -> Comparison:
    """Two loads: tables by load, with all metrics."""
    comparison = comparison_of(labels, facts=facts)
    return msgspec.structs.replace(comparison, groups=comparison.groups[-2:])


def shown(comparison: Comparison) -> Print:
    return lambda console: print_comparison(comparison, (), console)


@narrow
def test_a_report_is_whole(sample: Any, width: int) -> None:
    stages = tuple(priced(stage, Price(per_hour=3.6), 0.99) for stage in sample.summary.stages)
    summary = msgspec.structs.replace(sample.summary, stages=stages)
    text = assert_whole(lambda console: print_report(summary, console, ledger=True), width)
    rows = [line for line in text.splitlines() if line.startswith("concurrency-16 ")]
    assert len(rows) >= 3, "each table begins with the stage's name"


@narrow
@pytest.mark.parametrize("labels", [("old", "new"), ("old", "new", "other"), ("a-far-too-long-label", "b", "c", "d")])
def test_a_comparison_is_whole_and_has_its_intervals(labels: Sequence[str], width: int) -> None:
    for comparison in (comparison_of(labels), sides_of(labels)):
        text = assert_whole(shown(comparison), width)
        for group in comparison.groups[:2]:
            for difference in group.rows[0].differences[1:]:
                assert difference is not None
                assert f"({difference_interval(difference)})" in text
        assert {"fastest", "difference", "verdict"} <= set(text.split()), "no heading is split"


@narrow
def test_a_comparison_of_aggregates_is_whole(width: int) -> None:
    assert_whole(shown(sides_of(("old", "new", "x"), facts=False)), width)


@narrow
def test_an_audit_is_whole(width: int) -> None:
    values = {claim: Value(1234.5 + place, "", "ms") for place, claim in enumerate(Claim)}
    subjects = [
        Subject(name=f"concurrency-{n}", n=1000, circumstances=Circumstances(), values=values, doubts=())
        for n in (8, 16)
    ]
    audit = judge_all([judge_file("file.json", "vLLM JSON", subjects, ())], ())
    assert_whole(lambda console: print_audit(audit, console), width)


def test_a_table_is_folded_only_where_it_must_be_and_evenly() -> None:
    names = text_column(Text("name"), [Text("first"), Text("second")])
    parts = [[text_column(Text(f"{place}{n}"), [Text("12345")]) for n in range(4)] for place in "ab"]
    widths = {room: [len(table.columns) for table in folded([names], parts, room)] for room in (54, 53, 30, 29, 1)}
    assert widths == {54: [9], 53: [5, 5], 30: [5, 5], 29: [3, 3, 3, 3], 1: [2] * 8}


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("chat in-512 rate-0.0625", ["chat in-512", "rate-0.0625"]),
        ("input_len=1024,output_len=128", ["input_len=1024,", "output_len=128"]),
        ("a-far-too-long-name-of-a-stage-1024", ["a-far-too-long-", "name-of-a-stage-", "1024"]),
        ("unbreakableandfartoolong", ["unbreakableandfa", "rtoolong"]),
        ("漢漢漢漢漢漢漢漢漢漢", ["漢漢漢漢漢漢漢漢", "漢漢"]),
    ],
)
def test_names_are_folded_between_words(name: str, lines: list[str]) -> None:
    names = text_column(Text("stage"), [Text(name)], least=8)
    numbers = text_column(Text("p99"), [Text("1" * 31)])
    out = io.StringIO()
    for table in folded([names], [[numbers]], 48):
        Console(file=out, width=48).print(table)
    below = out.getvalue().replace("1" * 31, "").splitlines()[1:]
    assert [line.rstrip() for line in below] == lines


def test_rather_than_a_word_a_table_is_parted() -> None:
    names = text_column(Text("stage"), [Text("concurrency-16")], least=8)
    parts = [[text_column(Text(name), [Text("1" * 15)])] for name in ("p50", "p99")]
    assert len(folded([names], parts, 46)) == 1
    assert len(folded([names], parts, 45)) == 2
