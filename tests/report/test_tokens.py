"""The token ledger: always in JSON and HTML, in text where it has something to say or is asked for."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from rich.console import Console

from withstand.metrics.ledger import Check, Column, Ledger
from withstand.metrics.summary import Summary
from withstand.report.csv import csv_text
from withstand.report.html import render_html
from withstand.report.json import summary_json
from withstand.report.markdown import markdown
from withstand.report.terminal import print_report
from withstand.report.tokens import tells

Matches = Callable[[str, str], None]

CLAIMED = Ledger(
    server=Column(100, 6400),
    text=Column(20, 640),
    events=Column(120, 3840),
    reasoning=Column(100, 3200),
    requested=Column(120, 7680),
    checks=(
        Check(left="server", right="text", answers=20, left_tokens=1280, right_tokens=640, differing=20, worst=7),
        Check(left="server", right="events", answers=100, left_tokens=6400, right_tokens=3200, differing=100, worst=0),
    ),
    text_by="the engine's /tokenize",
)


def printed(summary: Summary, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=False, color_system=None)
    print_report(summary, console, **options)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def with_stage(single: Any, **changes: Any) -> Any:
    stage = msgspec.structs.replace(single.summary.stages[0], **changes)
    return msgspec.structs.replace(single, summary=msgspec.structs.replace(single.summary, stages=(stage,)))


@pytest.fixture
def claimed(single: Any) -> Any:
    return with_stage(single, ledger=CLAIMED, tokens_from={"server": 100, "chunks": 20})


def test_the_ledger_as_people_read_it(claimed: Any, matches: Matches) -> None:
    text = printed(claimed.summary)
    matches("tokens.txt", text[text.index("tokens by") : text.index("that differ") + len("that differ")] + "\n")


def test_where_all_agree_it_is_shown_only_if_asked_for(single: Any) -> None:
    assert not tells(single.summary.stages[0])
    assert "tokens by" not in printed(single.summary)
    assert "tokens by" not in markdown(single.summary)
    assert "tokens by" in printed(single.summary, ledger=True)
    assert "tokens by" in markdown(single.summary, ledger=True)


def test_an_estimate_is_something_to_say(single: Any) -> None:
    assert tells(with_stage(single, tokens_from={"chunks": 120}).summary.stages[0])


def test_aggregates_have_no_ledger(single: Any) -> None:
    bare = with_stage(single, ledger=None, tokens_from={"chunks": 120})
    assert "tokens by" not in printed(bare.summary, ledger=True)
    assert 'id="tokens"' not in render_html(bare.summary, bare.series, bare.about)
    assert json.loads(summary_json(bare.summary))["stages"][0]["ledger"] is None


def test_csv_has_every_column_and_who_disagrees(claimed: Any) -> None:
    (row,) = csv.DictReader(io.StringIO(csv_text(claimed.summary)))
    assert (row["ledger_server"], row["ledger_server_answers"]) == ("6400", "100")
    assert (row["ledger_cached"], row["ledger_cached_answers"]) == ("", "")
    assert row["tokens_from"] == "server=100 chunks=20"
    assert row["ledger_differs"] == "server/text=2 server/events=2"
    assert row["ledger_text_by"] == "the engine's /tokenize"


def test_json_has_every_column_and_unknown_ones_are_null(claimed: Any) -> None:
    (stage,) = json.loads(summary_json(claimed.summary))["stages"]
    ledger = stage["ledger"]
    assert ledger["server"] == {"answers": 100, "tokens": 6400}
    assert (ledger["cached"], ledger["reasoning_events"]) == (None, None)
    assert (ledger["text_by"], ledger["text_exact"]) == ("the engine's /tokenize", True)
    assert [(c["left"], c["right"], c["ratio"], c["differs"], c["worst"]) for c in ledger["checks"]] == [
        ("server", "text", 2.0, True, 7),
        ("server", "events", 2.0, True, 0),
    ]
    assert stage["mean_itl_per_token_ms"] is None
    assert stage["p99_itl_request_mean_ms"] > 0


def test_the_page_always_has_it(single: Any, claimed: Any) -> None:
    for sample in (single, claimed):
        assert '<section id="tokens"><h2>Tokens</h2>' in render_html(sample.summary, sample.series, sample.about)
    assert "server 2.00 x text · server 2.00 x events" in render_html(claimed.summary, claimed.series, claimed.about)


def test_markdown_has_it_where_it_matters(claimed: Any) -> None:
    (row,) = [line for line in markdown(claimed.summary).splitlines() if "6,400" in line]
    assert row.startswith("| rate-4 | server 100 + events 20 | 6,400 (100) | 640 (20) | 3,840 |")
