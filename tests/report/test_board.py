"""The dashboard that is kept: units that can be read, gaps that stay gaps, names that stay text; drawn by a browser."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pages import CHROMIUM, attribute, browse, measured, parsed
from withstand.report.board import Board, Graph, Line, Shade, Span, board_json, render_board, scale_of

LONG = "one-service-whose-name-does-not-end-soon"
EVIL = "<img src=x onerror=alert(1)>"
GRAPHS = (
    Graph("TTFT", "s", "The benchmark", [Line("p50", [None, 0.02, 0.04, None, 0.03, None])]),
    Graph("Nothing", "short", "The benchmark", []),
    Graph("KV cache", "percentunit", "Engines", [Line(f"{LONG}-{i}", [0.1 * i] * 6) for i in range(8)]),
    Graph("Besides", "s", "Engines", [Line(EVIL, [-0.002, 0.001, None, None, 0.0, 0.0])]),
    Graph("Idle", "reqps", "Engines", [Line("failed", [0.0] * 6)]),
)
BOARD = Board(
    title=f"chat {EVIL}",
    begun_utc="2026-11-28 03:04:05 UTC",
    length_s=60.0,
    step_s=12.0,
    window_s=30.0,
    stages=[
        Shade(span=Span("rate-1", 5, 20)),
        Shade(span=Span(f"rate-2 {EVIL}", 20, 40)),
        Shade(span=Span("rate-4", 40, 58)),
    ],
    alerts=[Span("QueueGrows (large)", 30, 58)],
    graphs=GRAPHS,
)


def drawn(board: Board) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(board_json(board, 10**6))
    return told


@pytest.mark.parametrize(
    ("unit", "value", "expected"),
    [
        ("s", 0.04, (1e-3, "ms")),
        ("s", 2.5, (1.0, "s")),
        ("s", -0.002, (1e-3, "ms")),
        ("s", 0.0, (1.0, "s")),
        ("s", 1e-9, (1e-6, "µs")),
        ("bytes", 3.2e9, (1e9, "GB")),
        ("Bps", 10.0, (1.0, "B/s")),
        ("percentunit", 0.001, (0.01, "%")),
        ("short", 12.0, (1.0, "")),
        ("suffix: tok/s", 12.0, (1.0, "tok/s")),
    ],
)
def test_a_graph_has_a_unit_in_which_it_can_be_read(unit: str, value: float, expected: tuple[float, str]) -> None:
    assert scale_of(Graph("t", unit, "r", [Line("a", [None, value])])) == expected


def test_a_gap_is_a_gap_and_values_are_in_the_unit() -> None:
    [first, empty, *_] = drawn(BOARD)["graphs"]
    assert first == {"unit": "ms", "lines": [{"name": "p50", "y": [None, 20, 40, None, 30, None]}]}
    assert empty["lines"] == []


def test_single_answers_are_points_where_they_were() -> None:
    graph = Graph("Answers", "s", "The benchmark", [Line("TTFT", [21.0, 22.5], [31.75, 57.0])])
    [told] = drawn(msgspec.structs.replace(BOARD, graphs=[graph]))["graphs"]
    assert told == {"unit": "s", "lines": [{"name": "TTFT", "y": [21, 22.5], "x": [31.75, 57]}]}


def test_sides_are_told_apart_and_a_warm_up_changes_no_shade() -> None:
    """Whether a scrape has seen a warm-up is chance."""
    a, b = (Shade(span=Span(f"{side}-01", 10, 20), side=side) for side in "ab")
    warm = Shade(span=Span("b-01 warm-up", 8, 10), side="b", warmup=True)
    with_it, without = (msgspec.structs.replace(BOARD, stages=stages) for stages in ([a, warm, b, a], [a, b, a]))
    assert drawn(with_it)["stages"] == drawn(without)["stages"]
    assert [shade[3:] for shade in drawn(with_it)["stages"]] == [[0, 0], [1, 0], [0, 1]]
    page = render_board(with_it)
    assert ", 3 stages." in page
    assert '<ul class="keys sides"><li><b>a</b></li><li><b>b</b></li></ul>' in page
    assert "keys sides" not in render_board(BOARD)


def test_the_page_says_of_which_span_its_rates_are() -> None:
    assert "of the last 4 min 00 s" in render_board(msgspec.structs.replace(BOARD, window_s=240.0))


def test_what_does_not_fit_is_thinned() -> None:
    points = Line("b", list(range(1000)), [i / 10 for i in range(1000)])
    large = msgspec.structs.replace(BOARD, graphs=[Graph("t", "short", "r", [Line("a", list(range(1000))), points])])
    thin = json.loads(board_json(large, 3000))
    drawn_points = thin["graphs"][0]["lines"][1]
    assert len(drawn_points["x"]) == len(drawn_points["y"]) < 1000
    assert thin["step"] > BOARD.step_s
    assert thin["graphs"][0]["lines"][0]["y"][1] == thin["step"] / BOARD.step_s


def test_what_came_from_outside_stays_text() -> None:
    page = parsed(render_board(BOARD))
    assert not page.open
    assert "img" not in page.seen


def test_legends_tell_the_mean_and_the_highest_and_what_is_empty_is_named() -> None:
    page = render_board(BOARD)
    assert "<b>p50</b> <span>mean 30.00, up to 40.00</span>" in page
    assert "No data: Nothing." in page
    assert page.count('data-chart="graph"') == 4
    assert "QueueGrows (large), from 30" in page
    assert "None called." in render_board(msgspec.structs.replace(BOARD, alerts=[]))


def test_counts_are_whole_numbers() -> None:
    lines = [Line("good", [1.0, 4.0, 10.0]), Line("failed", [0.0, 0.0])]
    page = render_board(msgspec.structs.replace(BOARD, graphs=[Graph("Answers so far", "short", "r", lines)]))
    assert "<b>good</b> <span>mean 5.00, up to 10</span>" in page
    assert "<b>failed</b> <span>mean 0, up to 0</span>" in page


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_all_graphs_are_drawn_in_silence(tmp_path: Path) -> None:
    """The page's policy forbids every request; a try would be told on the console."""
    document, console = browse(render_board(BOARD), tmp_path, 1400)
    assert console == ""
    assert attribute(document, "charts") == "drawn"


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_nothing_sticks_out_of_a_narrow_window(tmp_path: Path) -> None:
    document, _ = browse(measured(render_board(BOARD)), tmp_path, 520)
    window, body = attribute(document, "window"), attribute(document, "body")
    assert window
    assert body
    assert int(body) <= int(window) <= 520
    assert attribute(document, "plots") == "4"
    assert attribute(document, "empty") == "0"
