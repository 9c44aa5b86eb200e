"""What a Prometheus answers becomes the page that is kept; what it does not answer is one sentence."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from withstand import clock
from withstand.app.answers import answers, runs_below
from withstand.app.board import catch_up_s, keep_board, legend_of, on_grid, told_apart
from withstand.cli.announced import Announced
from withstand.cli.screen import terminal_screen
from withstand.errors import EngineError
from withstand.processes.identity import Identity
from withstand.record import Outage, Record, encode_record
from withstand.runs import AskedSide, AskedTurns, Manifest, RunFolder, RunState, StageEntry, TurnsFolder, this_process
from withstand.spec import Plan, Stage, Workload
from withstand.spec.stack import Monitoring, stack_of
from withstand.stack.blueprint import Blueprint, Process
from withstand.stack.prometheus import Range, Series, over_time
from withstand.stack.queries import FIRING, HEARD, STAGES
from withstand.stack.standing import Standing
from withstand.stack.state import StackState
from withstand.testing import Schedule
from withstand.testing.records import make_failure, make_record

WHEN = Range(1000.0, 1010.0, 2.0)


@contextmanager
def prometheus(answers: dict[str, Any], status: int = 200, errors: dict[str, str] | None = None) -> Iterator[str]:
    """One that knows these expressions: a list of (labels, offsets in s, value), or a whole answer.

    ``errors`` are those of the last look at each target.
    """

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
            found = answers.get(form["query"][0], [])
            start = float(form["start"][0])
            if isinstance(found, list):
                found = {
                    "data": {
                        "result": [
                            {"metric": labels, "values": [[start + at, str(value)] for at in offsets]}
                            for labels, offsets, value in found
                        ]
                    }
                }
            body = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            assert self.path == "/api/v1/targets?state=active"
            targets = [
                {"labels": {"service": service}, "lastError": error, "health": "down" if error else "up"}
                for service, error in (errors or {}).items()
            ]
            body = json.dumps({"status": "success", "data": {"activeTargets": targets}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.+?)</script>', page)
    assert found
    told: dict[str, Any] = json.loads(found[1])
    return told


def test_stages_alerts_and_gaps_are_where_they_were(tmp_path: Path) -> None:
    answers = {
        STAGES: [({"stage": "late"}, [6, 8], 1), ({"stage": "early"}, [0, 2], 1)],
        FIRING: [({"alertname": "QueueGrows", "service": "a"}, [2, 8], 1)],
        "withstand:kv_share": [({"service": "a"}, [0, 2, 6], 0.25), ({"service": "b"}, [0], "NaN")],
    }
    with prometheus(answers) as url:
        path = keep_board(tmp_path, url, "chat", clock.wall_s() - 9, 2.0)
    page = path.read_text()
    told = data_of(page)
    assert path == tmp_path / "board.html"
    assert told["stages"] == [["early", 0, 4, 0, 0], ["late", 6, pytest.approx(9, abs=0.9), 0, 1]]
    shown = [graph for graph in told["graphs"] if graph["lines"]]
    assert shown == [{"unit": "%", "lines": [{"name": "a", "y": [25, 25, None, 25, None]}]}]
    assert page.count("QueueGrows (a), from ") == 2


def test_stages_of_several_runs_have_their_run_s_name(tmp_path: Path) -> None:
    seen = (("direct", "s", 0), ("hop", "s", 4), ("hop", "t", 6))
    answers = {STAGES: [({"stage": stage, "run": run}, [at], 1) for run, stage, at in seen]}
    with prometheus(answers) as url:
        page = keep_board(tmp_path, url, "chat", clock.wall_s() - 9, 2.0).read_text()
    assert [(stage[0], stage[3]) for stage in data_of(page)["stages"]] == [("direct", 0), ("hop s", 1), ("hop t", 1)]


def test_runs_of_a_side_have_one_hue_and_their_warm_ups_none(tmp_path: Path) -> None:
    stages = (
        StageEntry(name="warm", stage=Stage(name="warm", num_prompts=1, warmup=True)),
        StageEntry(name="s", stage=Stage(name="s", num_prompts=1)),
    )
    sides = {"a": AskedSide(label="direct", plan=Plan()), "b": AskedSide(label="gateway", plan=Plan())}
    TurnsFolder.create(
        tmp_path / "ab", AskedTurns(version="0", created_utc="now", pairs=4, writer=this_process(), **sides)
    )
    a_run(tmp_path / "ab" / "b-01", clock.wall_s(), stages=stages)
    seen = (("a-01", "s", 0), ("b-01", "warm", 2), ("b-01", "s", 4), ("a-02", "s", 6))
    answers = {STAGES: [({"stage": stage, "run": run}, [at], 1) for run, stage, at in seen]}
    with prometheus(answers) as url:
        page = keep_board(tmp_path / "ab", url, "chat", clock.wall_s() - 9, 2.0).read_text()
    assert "<li><b>a = direct</b></li><li><b>b = gateway</b></li>" in page
    told = data_of(page)["stages"]
    assert [(name, side) for name, _, _, side, _ in told] == [("a-01", 0), ("b-01", 1), ("a-02", 0)]


def test_values_lie_on_the_grid_wherever_their_instants_are() -> None:
    series = Series({}, [(1000.0004, "1"), (1003.9996, "2"), (1010.0, "3"), (1012.0, "9"), (1002.0, "+Inf")])
    assert on_grid(series, WHEN) == [1, None, 2, None, None, 3]


def test_legends_are_filled_in_as_grafana_does() -> None:
    assert legend_of("{{service}} waits {{ other }}", {"service": "a"}) == "a waits "
    assert legend_of("p50", {}) == "p50"


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ({"status": "error", "error": "parse error"}, 400, "refuses 'up': parse error"),
        ("no JSON of ours", 200, "does not answer: Expected `object`"),
    ],
)
def test_what_it_does_not_answer_is_a_sentence(answer: Any, status: int, said: str) -> None:
    with prometheus({"up": answer}, status) as url, pytest.raises(EngineError, match=said):
        over_time(url, "up", WHEN)


def test_nobody_there() -> None:
    with prometheus({}) as url:
        pass
    with pytest.raises(EngineError, match=r"does not answer: .*refused"):
        over_time(url, "up", WHEN)


def test_series_of_one_name_have_their_service_s() -> None:
    found = [("mean", Series({"service": f"gateway{i}"}, [])) for i in ("", "-2")] + [("p99", Series({}, []))]
    assert [name for name, _ in told_apart(found)] == ["mean gateway", "mean gateway-2", "p99"]


def a_run(folder: Path, since_s: float, *records: Record, **facts: Any) -> None:
    now = clock.anchor()
    anchor = clock.Anchor(wall_ns=int(since_s * 1e9), monotonic_ns=now.monotonic_ns)
    run = RunFolder.create(
        folder, Manifest(version="0", created_utc="", anchor=anchor, plan=Plan(), writer=this_process(), **facts)
    )
    run.worker_file(0).write_bytes(b"".join(encode_record(record) + b"\n" for record in records))


def test_each_answer_of_a_short_run_is_seen_though_no_scrape_has_been_after_it(tmp_path: Path) -> None:
    since_s = clock.wall_s() - 50
    slow = [make_record(i, Schedule(ttft_ms=20_000, itl_ms=1_000, tokens=2), sent_ms=1_000 * i) for i in range(4)]
    a_run(tmp_path / "run", since_s, *slow, make_failure(4, sent_ms=5_000))
    with prometheus({}) as url:
        page = keep_board(tmp_path / "run", url, "chat", since_s, 2.0).read_text()
    [graph] = [graph for graph in data_of(page)["graphs"] if graph["lines"]]
    found = {line["name"]: line for line in graph["lines"]}
    assert set(found) == {"TTFT", "E2EL", "failed after"}
    assert found["TTFT"]["y"] == [20] * 4
    assert found["E2EL"]["y"] == [21] * 4
    assert found["E2EL"]["x"] == [21, 22, 23, 24]
    assert "Each answer at the client" in page


def test_answers_of_several_runs_are_on_one_time_and_many_are_thinned_aloud(tmp_path: Path) -> None:
    since_s = clock.wall_s() - 50
    a_run(tmp_path / "a", since_s + 10, make_record(0, Schedule(ttft_ms=1_000, tokens=1)))
    a_run(tmp_path / "b", since_s + 30, make_record(0, Schedule(ttft_ms=2_000, tokens=1)))
    [graph] = answers(runs_below(tmp_path), since_s)
    assert [(round(x), y) for x, y in zip(graph.lines[0].at_s or (), graph.lines[0].values, strict=True)] == [
        (11, 1),
        (32, 2),
    ]
    a_run(tmp_path / "many", since_s, *(make_record(i, Schedule(ttft_ms=1, tokens=1)) for i in range(3_001)))
    [graph] = answers(runs_below(tmp_path / "many"), since_s)
    assert graph.lines[0].name == "TTFT, one of 3"
    assert len(graph.lines[0].values) == 1_001


def test_no_answer_is_no_graph(tmp_path: Path) -> None:
    a_run(tmp_path / "none", clock.wall_s())
    assert answers(runs_below(tmp_path), clock.wall_s()) == []
    assert 4 <= catch_up_s(2.0) <= catch_up_s(60.0) <= 10


def test_what_could_not_be_seen_is_said_on_the_page(tmp_path: Path) -> None:
    since_s = clock.wall_s() - 9
    lost = Outage(service="m", began_ns=2 * 10**9, reason="ended (killed by SIGKILL) and said nothing.")
    a_run(tmp_path / "run", since_s, outages=(lost, Outage(service="n", began_ns=-(10**9), back_ns=10**9)))
    heard = [
        ({"service": "large"}, [0, 2, 4, 6, 8], 0),
        ({"service": "slow"}, [0, 2], 0),
        ({"service": "slow"}, [4, 6, 8], 1),
        ({"service": "well"}, [0, 2, 4, 6, 8], 1),
    ]
    errors = {"large": "sample limit exceeded", "well": "", "slow": 'Get "http://h/metrics": <b>odd</b>'}
    answers = {HEARD: heard, "withstand:kv_share": [({"service": "a"}, [0], 1e308), ({"service": "b"}, [0], 0.5)]}
    with prometheus(answers, errors=errors) as url:
        page = keep_board(tmp_path / "run", url, "chat", since_s, 2.0).read_text()
    assert 'id="missed"' in page
    assert "The metrics of large were not taken 100 % of the time: its page has more than 10,000 series." in page
    assert "&lt;b&gt;odd&lt;/b&gt;" in page
    assert "The metrics of well" not in page
    assert "m was away from 2.00 s on: it ended (killed by SIGKILL) and said nothing." in page
    assert "n was away from 0.00 s to 1.00 s" in page
    assert "KV cache in use, a: values beyond 1e100 are left out." in page
    assert "inf" not in re.sub(r"<script.+?</script>|<style.+?</style>", "", page, flags=re.DOTALL)
    (tmp_path / "none").mkdir()
    assert 'id="missed"' not in keep_quiet(tmp_path / "none")


def keep_quiet(folder: Path) -> str:
    with prometheus({}) as url:
        return keep_board(folder, url, "chat", clock.wall_s() - 9, 2.0).read_text()


def monitored(folder: Path, url: str, began_s: float = 0.0) -> Standing:
    """A stack with a Prometheus at that address."""
    process = Process(name="monitoring", kind="prometheus", argv=("x",), port=int(url.rpartition(":")[2]))
    stack = stack_of({"engines": {"a": {"kind": "command", "args": ["x"]}}}, "s")
    blueprint = Blueprint(made_of=stack, processes=(process,), door="", model="m")
    state = StackState(supervisor=Identity(1, "1"), mark="", began_s=began_s)
    return Standing(name="s", folder=folder, blueprint=blueprint, state=state)


def test_a_complete_run_that_lacks_its_dashboard_gets_it_if_the_stack_is_still_the_one_that_saw_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that was killed while that was made, and is resumed: nothing of it is opened any more."""
    run, then_s = tmp_path / "run", clock.wall_s() - 60
    done = StageEntry(
        name="s", stage=Stage(name="s", workload=Workload()), state=RunState.DONE, started_ns=0, ended_ns=2_000_000_000
    )
    a_run(run, then_s, stages=(done,))
    seen = {STAGES: [({"stage": "s"}, [0, 1], 1)]}
    with prometheus(seen) as url, terminal_screen(quiet=False, plain=True, blocks=False) as screen:
        for began_s, kept in ((then_s + 5, False), (then_s - 5, True), (then_s + 5, True)):
            Announced(screen, monitored(tmp_path, url, began_s), Monitoring(scrape_s=0.2)).keep(run)
            assert (run / "board.html").exists() is kept
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("monitoring: what it saw is not kept: it went with the stack that was up then.") == 1
    assert said.count("What the monitoring saw: ") == 1
    assert "board.html" in (run / "report.html").read_text()
    assert data_of((run / "board.html").read_text())["stages"]


def test_a_dashboard_that_cannot_be_kept_is_said_aloud_and_in_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However quiet the screen is."""
    with prometheus({}) as url:
        pass
    (tmp_path / "stack").mkdir()
    standing = monitored(tmp_path / "stack", url)
    with terminal_screen(quiet=True, blocks=False) as screen:
        told = Announced(screen, standing, Monitoring(scrape_s=0.2))
        a_run(tmp_path / "run", clock.wall_s())
        told.opened(tmp_path / "run")
        told.keep(tmp_path / "run")
    assert "withstand: monitoring: what it saw is not kept: Prometheus at" in capsys.readouterr().err
    assert "Monitoring: what it saw is not kept" in " ".join((tmp_path / "run" / "report.html").read_text().split())
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["notes"][0].startswith("monitoring: ")
