"""The page in a real browser, beside a real run that goes on."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import Tab, browser
from pages import CHROMIUM
from ui_server import Ui, copied, ui
from withstand.testing import Schedule, TruthServer

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")]

EVIL = "<img src=x onerror=document.documentElement.dataset.done=1>"
ROWS = "document.querySelectorAll('#rows tr').length"
NAMELESS = "(e) => !e.labels?.length && !e.textContent && !e.ariaLabel"
MISSING = "[...document.querySelectorAll('tr.current td')].filter((td) => td.innerText === '\\u2013').length"
SHOWN = "document.body.innerText"
LIVE = (
    "--request-rate",
    "20",
    "--num-prompts",
    "160",
    "--set",
    "workload.options.output_len=20",
    "--scrape-interval",
    "0",
)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("browser")) as one:
        yield one


@pytest.fixture
def shelf(finished: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "shelf"
    for day, name in enumerate(("first", "second", "third"), start=1):
        copied(finished, folder / name, created_utc=f"2026-11-0{day}T00:00:00Z")
    return folder


def opened(tab: Tab, server: Ui, rows: int, width: int = 1400, *, dark: bool = False) -> None:
    tab.said.clear()
    tab.open(server.url, width, dark=dark)
    tab.until(f"document.documentElement.dataset.list === 'drawn' && {ROWS} === {rows}")


def names(tab: Tab) -> Any:
    return tab.value("[...document.querySelectorAll('#rows th a')].map((a) => a.textContent)")


def test_a_run_is_followed_to_its_end_and_is_done_then(tab: Tab, tmp_path: Path) -> None:
    with TruthServer(Schedule(ttft_ms=40, itl_ms=5, tokens=20)) as truth, ui(tmp_path) as server:
        opened(tab, server, 0)
        assert "withstand run" in tab.value(SHOWN)
        command = [sys.executable, "-m", "withstand", "run", "--base-url", truth.base_url, *LIVE, "--quiet"]
        with subprocess.Popen([*command, "--output-dir", str(tmp_path / "now")], stderr=subprocess.PIPE) as run:
            tab.until(f"{ROWS} === 1 && document.querySelector('#rows .state.running')")
            tab.value("document.querySelector('#rows th a').click()")
            tab.until(
                "document.documentElement.dataset.looks > 3 && document.querySelectorAll('.course svg').length >= 3"
            )
            shown = tab.value("document.getElementById('live').innerText")
            tab.until(f"document.querySelector('tr.current') && {MISSING} === 1")  # nothing was cut by us
            for said in ("req/s", "of 20.00 asked", "tok/s", "TTFT, median", "E2EL, median", "stage "):
                assert said in shown
            tab.until("document.documentElement.dataset.run === 'done'")
            assert run.wait(60) in {0, 3}
        tab.until("document.getElementById('live').hidden && document.querySelector('#deeds a')")
        assert "160" in tab.value("document.getElementById('stages').innerText")
        tab.value("document.querySelector('#deeds a').click()")
        tab.until("document.documentElement.dataset.charts === 'drawn'")
        assert tab.value("location.origin !== self.origin && self.origin") == "null"
        assert not tab.said


def test_two_are_ticked_and_compared(tab: Tab, shelf: Path) -> None:
    with ui(shelf) as server:
        opened(tab, server, 3)
        assert names(tab) == ["third", "second", "first"]
        assert tab.value("document.getElementById('ticked').hidden")
        tab.value("document.querySelectorAll('#rows .tick input')[0].click()")
        assert tab.value("document.getElementById('compare').disabled")
        tab.value("document.querySelectorAll('#rows .tick input')[2].click()")
        tab.value("document.getElementById('compare').click()")
        tab.until("document.documentElement.dataset.charts === 'drawn' && document.getElementById('glance')")
        assert tab.value("document.querySelector('.who-is-who').innerText").index("first") >= 0
        assert not tab.said


def test_blocks_lie_below_their_comparison_until_they_are_asked_for(tab: Tab, shelf: Path, finished: Path) -> None:
    for name in ("A", "B"):
        copied(finished, shelf / "ab" / name)
    for name in ("ab.json", "comparison.html"):
        (shelf / "ab" / name).write_text("{}")
    told = {"sides": [{"label": "A"}], "headline": "Each ran once: `withstand ab` measures them in turn."}
    (shelf / "ab" / "comparison.json").write_text(json.dumps(told))
    with ui(shelf) as server:
        opened(tab, server, 4)
        assert "4 in all" in tab.value(SHOWN)
        assert "Each ran once: withstand ab measures" in tab.value(SHOWN)
        assert "Show 2 blocks of comparisons" in tab.value(SHOWN)
        tab.value("document.getElementById('show-blocks').click()")
        assert tab.value(ROWS) == 6
        assert not tab.said


def test_a_limit_without_an_end_is_told_in_words(tab: Tab, shelf: Path) -> None:
    with ui(shelf) as server:
        opened(tab, server, 3)
        tab.value("document.querySelector('#rows th a').click()")
        tab.until("document.documentElement.dataset.run === 'done'")
        for ends, said in (
            ("tried: 3, low: null, high: 16.9", "The limit lies below 16.90 req/s (3 loads tried)"),
            ("tried: 1, low: 4", "The limit lies above 4.00 req/s (1 load tried)"),
            ("tried: 3, low: 4, high: 5", "The limit lies 4.00 \u2013 5.00 req/s (3 loads tried)"),
            ("tried: 2", "The limit not known yet  (2 loads tried)"),
            ("tried: 0, low: null, high: null", "The limit not known yet  (no load tried so far)"),
        ):
            now = f"{{stages: [], limit: {{axis: 'rate', {ends}}}, current: {{latencies: {{}}}}}}"
            assert (
                tab.value(f"(([a, b, c, d]) => `${{a}} ${{b}} ${{c}} (${{d}})`)(Looks.read({now}).figures.at(-1))")
                == said
            )


def test_what_cannot_be_compared_is_said_on_the_page(tab: Tab, shelf: Path) -> None:
    (shelf / "first" / "records.jsonl.gz").unlink()
    (shelf / "second" / "records.jsonl.gz").unlink()
    with ui(shelf) as server:
        opened(tab, server, 3)
        for place in (1, 2):
            tab.value(f"document.querySelectorAll('#rows .tick input')[{place}].click()")
        tab.value("document.getElementById('compare').click()")
        sentence = tab.until("!document.getElementById('notice').hidden && document.getElementById('notice').innerText")
        assert sentence.endswith(".")
        assert not tab.value("document.getElementById('compare').disabled")


def test_the_list_is_searched_and_sorted_by_keyboard_alone(tab: Tab, shelf: Path) -> None:
    with ui(shelf) as server:
        opened(tab, server, 3)
        tab.value("document.getElementById('search').focus()")
        tab.call("Input.insertText", text="SEC done")
        assert names(tab) == ["second"]
        assert "1 of 3" in tab.value(SHOWN)
        tab.value("Object.assign(document.getElementById('search'), { value: '' }).dispatchEvent(new Event('input'))")
        tab.key("Tab")
        tab.key("Enter", "\r")
        assert names(tab) == ["first", "second", "third"]
        assert tab.value("document.querySelector('[aria-sort]').textContent") == "Run"
        for _ in range(10):
            tab.key("Tab")
        tab.key(" ", " ")
        assert tab.value("document.querySelectorAll('.tick input:checked').length") == 1


def test_text_from_outside_stays_text(tab: Tab, shelf: Path, finished: Path) -> None:
    evil = copied(
        finished, shelf / EVIL.replace("/", ""), model=EVIL, target=f"\u202e{EVIL}", error=EVIL, state="failed"
    )
    summary = json.loads((evil / "summary.json").read_text())
    for stage in summary["stages"]:
        stage["doubts"] = [{"kind": EVIL, "sentence": EVIL, "remedy": EVIL, "blocking": True}]
    (evil / "summary.json").write_text(json.dumps(summary))
    with ui(shelf) as server:
        opened(tab, server, 4)
        assert not tab.value("document.querySelector('main img')")
        tab.value("[...document.querySelectorAll('#rows th a')].find((a) => a.textContent.includes('img')).click()")
        tab.until("document.documentElement.dataset.run === 'failed'")
        assert EVIL in tab.value("document.getElementById('doubts').innerText")
        assert not tab.value("document.querySelector('main img') || document.documentElement.dataset.done")
        assert not tab.said


def test_a_strangers_report_reaches_nothing(tab: Tab, shelf: Path) -> None:
    script = """<p id=p>waits</p><script>
      const tried = [fetch("/api/runs", {mode: "no-cors"}), fetch("/api/make", {method: "POST", body: "{}"})];
      Promise.allSettled(tried).then((all) => {
        let kept = "stored";
        try { localStorage.x = 1; } catch { kept = "nothing stored"; }
        document.getElementById("p").textContent = all.map((one) => one.status).join(" ") + " " + kept;
      });
    </script>"""
    (shelf / "first" / "report.html").write_text(script)
    with ui(shelf) as server:
        opened(tab, server, 3)
        tab.value("[...document.querySelectorAll('#rows th a')].find((a) => a.textContent === 'first').click()")
        tab.until("document.querySelector('#deeds a')")
        tab.value("document.querySelector('#deeds a').click()")
        tab.until("document.getElementById('p') && document.getElementById('p').textContent !== 'waits'")
        assert tab.value("document.getElementById('p').textContent") == "rejected rejected nothing stored"


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (800, True), (390, False)])
def test_it_fits_the_window_and_can_be_read(tab: Tab, shelf: Path, width: int, *, dark: bool) -> None:
    with ui(shelf) as server:
        for path in ("", "run"):
            opened(tab, server, 3, width, dark=dark)
            if path:
                tab.value("document.querySelector('#rows th a').click()")
                tab.until("document.documentElement.dataset.run === 'done'")
            assert tab.value("document.documentElement.scrollWidth") == width
            assert not tab.value(f"[...document.querySelectorAll('button, input, select, a')].some({NAMELESS})")
        assert not tab.said


@pytest.mark.parametrize("width", [1400, 1181, 1081, 1000, 800, 390])
def test_the_list_need_not_be_moved_sideways(tab: Tab, shelf: Path, width: int) -> None:
    for name in ("first", "second"):
        summary = shelf / name / "summary.json"
        told = json.loads(summary.read_text())
        doubt = {"kind": "client_bound", "sentence": "It was busy.", "blocking": True}
        told["stages"][0] |= {"attempted": 123_456, "failed": 12_345, "output_throughput": 123_456.7}
        told["stages"][0]["doubts"] = [doubt]
        summary.write_text(json.dumps(told))
    with ui(shelf) as server:
        opened(tab, server, 3, width)
        over = "((e) => e.scrollWidth - e.clientWidth)(document.getElementById('list'))"
        assert tab.value(over) <= 0


@pytest.mark.parametrize("width", [1000, 800, 390])
def test_no_cell_lies_below_the_box_to_tick(tab: Tab, shelf: Path, width: int) -> None:
    with ui(shelf) as server:
        opened(tab, server, 3, width)
        row = "document.querySelector('#rows tr')"
        left = tab.value(f"{row}.querySelector('th').getBoundingClientRect().left")
        lefts = tab.value(
            f"[...{row}.querySelectorAll('td:not(.tick)')].map((td) => td.getBoundingClientRect())"
            ".filter((box) => box.width).map((box) => box.left)"
        )
        assert len(lefts) > 5
        assert min(lefts) == left
        assert tab.value(f"{row}.querySelector('.tick').getBoundingClientRect().right") <= left


@pytest.mark.parametrize("width", [1400, 1000, 800, 390])
def test_failures_are_seen_at_every_width(tab: Tab, shelf: Path, width: int) -> None:
    summary = shelf / "first" / "summary.json"
    told = json.loads(summary.read_text())
    told["stages"][0]["failed"] = 39
    summary.write_text(json.dumps(told))
    with ui(shelf) as server:
        opened(tab, server, 3, width)
        failed = "[...document.querySelectorAll('#rows .bad')].filter((e) => e.offsetParent).map((e) => e.innerText)"
        assert tab.value(failed) == ["39 failed"]
        box = "document.querySelector('#rows .bad').getBoundingClientRect()"
        assert tab.value(f"{box}.right") <= width


def test_the_page_says_that_the_server_has_gone(tab: Tab, shelf: Path) -> None:
    with ui(shelf) as server:
        opened(tab, server, 3)
        assert server.interrupt() == 0
        assert "has ended" in tab.until(
            "!document.getElementById('notice').hidden && document.getElementById('notice').innerText"
        )
        assert tab.value(ROWS) == 3


def test_a_run_that_is_removed_leaves_the_list(tab: Tab, shelf: Path) -> None:
    with ui(shelf) as server:
        opened(tab, server, 3)
        shutil.rmtree(shelf / "second")
        tab.until(f"{ROWS} === 2")
        assert names(tab) == ["third", "first"]
