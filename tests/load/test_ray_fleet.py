"""Workers on the nodes of a real Ray cluster. The nodes share this machine, so how far their clocks differ is known."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import msgspec
import pytest

from driving import Drive, Driven, asked, job_for
from ray_nodes import RayNodes, may_skew_clocks, own_surroundings, processes_with, until
from withstand.errors import MeasureError
from withstand.load import stage
from withstand.load.job import Report
from withstand.load.ray.fleet import RayHosts
from withstand.load.ray.words import Order, Word
from withstand.load.texts import read_texts
from withstand.record import Health, Place, Status
from withstand.request import Request
from withstand.runs import RunFolder
from withstand.spec import Timeouts
from withstand.testing import Schedule, TruthServer

if importlib.util.find_spec("ray") is None:
    pytest.skip("Ray is not installed here; `make test-ray` has an environment with it", allow_module_level=True)

QUICK = Schedule(ttft_ms=5, itl_ms=1, tokens=5)
SLOW = Schedule(ttft_ms=100, itl_ms=50, tokens=40)
NAMES = ("alpha", "beta", "gamma")
SKEW_S = 5000
RUN = (sys.executable, "-m", "withstand", "run", "--input-len", "8", "--output-len", "5", "--output-dir", "r")


@pytest.fixture(scope="module", autouse=True)
def home() -> Iterator[Path]:
    with own_surroundings() as home:
        yield home


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is busy with something else as well, nothing fails for being slow."""
    monkeypatch.setattr(stage, "_PATIENCE_NS", 30_000_000_000)
    monkeypatch.setattr(stage, "_READY_S", 180.0)


@pytest.fixture
def drive(drive: Drive) -> Drive:
    return partial(drive, timeouts=Timeouts())


@pytest.fixture(scope="module")
def nodes(home: Path) -> Iterator[RayNodes]:
    with RayNodes(NAMES) as nodes:
        yield nodes


@pytest.fixture
def with_node(nodes: RayNodes) -> Iterator[Callable[..., None]]:
    """``with_node(name, clock_ahead_s)``: one more, until the test is over or kills it."""
    added: list[str] = []

    def add(name: str, clock_ahead_s: int = 0) -> None:
        nodes.add(name, clock_ahead_s)
        added.append(name)

    yield add
    for name in added:
        nodes.kill(name)


@pytest.fixture
def hosts(nodes: RayNodes, tmp_path: Path) -> Iterator[RayHosts]:
    with RayHosts(nodes.address, tmp_path / "fleet.log", 1) as hosts:
        yield hosts
    workers_end(nodes)


def workers_end(nodes: RayNodes) -> None:
    until(lambda: not nodes.ours(), "the workers on the nodes end")


def plan_of(driven: Driven) -> list[tuple[int, int, int]]:
    """Each request, whose it was, and when it was due from the stage's start."""
    return [(r.id, r.worker, (r.scheduled_ns or 0) - driven.result.started_ns) for r in driven.records]


def place_of(health: Health) -> Place:
    assert health.place is not None
    return health.place


def interrupting(*when: Callable[[Report, int], bool]) -> Callable[[Report, int], None]:
    """A listener that interrupts the run when the first of these holds, and again for the next."""
    waiting = list(when)

    def listener(report: Report, since_start_ns: int) -> None:
        if waiting and waiting[0](report, since_start_ns):
            waiting.pop(0)
            os.kill(os.getpid(), signal.SIGINT)

    return listener


def once_after(after_ns: int, act: Callable[[], None]) -> Callable[[Report, int], None]:
    """A listener that acts when so much of the stage is over."""
    acted: list[int] = []

    def listener(_: Report, since_start_ns: int) -> None:
        if since_start_ns > after_ns and not acted:
            acted.append(since_start_ns)
            act()

    return listener


# What is sent.


def test_three_nodes_send_what_one_machine_sends(drive: Drive, hosts: RayHosts) -> None:
    plans = []
    for muster in ({}, {"muster": hosts.muster}):
        with TruthServer(QUICK, keep_bodies=True) as server:
            driven = drive(server.base_url, asked(60, gap_ns=20_000_000), workers=3, **muster)
            bodies = sorted(json.dumps(s.body) for s in server.truth())
        assert {r.status for r in driven.records} == {Status.OK}
        plans.append((plan_of(driven), bodies))
    assert plans[0] == plans[1]
    places = [place_of(health) for health in driven.result.health]
    assert [place.host for place in places] == list(NAMES)
    for place in places:
        assert abs(place.clock.offset_ns) <= place.clock.error_ns
        assert place.clock.drift_ns is not None
        assert place.niceness == 0


def test_the_answers_texts_come_back_from_the_nodes(drive: Drive, hosts: RayHosts, tmp_path: Path) -> None:
    with TruthServer(QUICK) as server:
        drive(server.base_url, asked(30, gap_ns=5_000_000), workers=3, text_share=1.0, muster=hosts.muster)
    assert dict(read_texts(tmp_path / "work")) == dict.fromkeys(range(30), "t0 t1 t2 t3 t4")


def test_a_load_without_end_is_brought_there_while_it_goes_on(drive: Drive, hosts: RayHosts) -> None:
    pattern = asked(1)[0]
    requests: Iterator[Request] = (msgspec.structs.replace(pattern, id=i, session=i) for i in count())
    with TruthServer(QUICK) as server:
        driven = drive(
            server.base_url,
            requests,
            cap=12,
            workers=3,
            endless=True,
            duration_ns=60_000_000_000,
            listener=interrupting(lambda report, _: report.done > 700),
            muster=hosts.muster,
        )
    assert {r.status for r in driven.records} == {Status.OK}
    assert len(driven.records) > 700, "more than was written before the start"
    assert len({r.id for r in driven.records}) == len(driven.records)


@pytest.mark.skipif(not may_skew_clocks(), reason="this machine lets nobody make a time namespace")
def test_a_node_with_another_clock_writes_the_run_s_times(
    drive: Drive, nodes: RayNodes, with_node: Callable[..., None], tmp_path: Path
) -> None:
    with_node("ahead", SKEW_S)
    with RayHosts(nodes.address, tmp_path / "log", 1) as hosts, TruthServer(SLOW) as server:
        driven = drive(server.base_url, asked(20, gap_ns=50_000_000), workers=4, muster=hosts.muster)
    ahead = next(health for health in driven.result.health if place_of(health).host == "ahead")
    offset = place_of(ahead).clock
    assert abs(offset.offset_ns - SKEW_S * 1_000_000_000) <= offset.error_ns
    assert [due_ns for _, _, due_ns in plan_of(driven)] == [i * 50_000_000 for i in range(20)]
    for record in driven.records:
        assert record.status is Status.OK
        assert record.scheduled_ns is not None
        assert record.sent_ns is not None
        assert record.scheduled_ns <= record.sent_ns < record.chunk_ns[0] < driven.result.ended_ns + offset.error_ns
        assert record.chunk_ns[0] - record.sent_ns > 99_000_000


# What goes wrong.


def test_a_node_that_is_lost_costs_only_what_was_unfinished(
    drive: Drive, nodes: RayNodes, with_node: Callable[..., None], tmp_path: Path
) -> None:
    with_node("delta")
    kill = once_after(4_000_000_000, partial(nodes.kill, "delta"))
    with RayHosts(nodes.address, tmp_path / "log", 1) as hosts, TruthServer(QUICK) as server:
        driven = drive(server.base_url, asked(800, gap_ns=20_000_000), workers=4, listener=kill, muster=hosts.muster)
    assert hosts.hosts == ("alpha", "beta", "delta", "gamma")
    of = [Counter(r.status for r in driven.records if r.worker == worker) for worker in range(4)]
    assert of[0] == of[1] == of[3] == {Status.OK: 200}
    assert set(of[2]) == {Status.OK, Status.LOST}
    assert of[2][Status.OK] > 2_000_000_000 / 80_000_000, "all but the last moment is on file"
    assert of[2].total() < 200, "it was noticed before the end"
    assert len({r.id for r in driven.records}) == len(driven.records)
    assert [h.lost for h in driven.result.health] == [False, False, True, False]
    assert driven.result.error is not None
    assert re.match(r"Worker 2 died in mid-stage \(node delta: .+\); what was on file", driven.result.error)


def test_a_node_that_falls_silent_is_given_up(drive: Drive, nodes: RayNodes, hosts: RayHosts) -> None:
    """As if its cable had been cut: nothing fails, nothing comes. A frozen actor stands for it."""
    freeze = once_after(1_000_000_000, lambda: os.kill(parent_of(nodes.ours()[0]), signal.SIGSTOP))
    with TruthServer(QUICK) as server:
        driven = drive(server.base_url, asked(600, gap_ns=20_000_000), workers=3, listener=freeze, muster=hosts.muster)
    assert driven.result.error is not None
    assert "no word for 5 s" in driven.result.error
    assert sorted(h.lost for h in driven.result.health) == [False, False, True]
    assert len({r.id for r in driven.records}) == len(driven.records)
    workers_end(nodes)


def test_a_worker_that_falls_silent_on_its_node_is_given_up(
    drive: Drive, nodes: RayNodes, hosts: RayHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "_SILENCE_NS", 5_000_000_000)
    freeze = once_after(1_000_000_000, lambda: os.kill(nodes.ours()[0], signal.SIGSTOP))
    with TruthServer(QUICK) as server:
        driven = drive(server.base_url, asked(150, gap_ns=20_000_000), workers=3, listener=freeze, muster=hosts.muster)
    assert driven.result.error is not None
    assert "said nothing for 5 s" in driven.result.error
    assert sorted(h.lost for h in driven.result.health) == [False, False, True]
    assert len(driven.records) == 150
    workers_end(nodes)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("interrupts", [1, 2])
def test_interrupts_reach_the_nodes(drive: Drive, hosts: RayHosts, interrupts: int) -> None:
    times_ns = (3_000_000_000, 3_700_000_000)[:interrupts]
    listener = interrupting(*(lambda _, now_ns, at_ns=at_ns: now_ns > at_ns for at_ns in times_ns))
    requests = asked(600, tokens=40, gap_ns=20_000_000)
    with TruthServer(SLOW) as server:
        driven = drive(
            server.base_url, requests, workers=3, listener=listener, muster=hosts.muster, drain_ns=30_000_000_000
        )
    of = Counter(r.status for r in driven.records)
    assert driven.result.interrupted
    assert (of[Status.CANCELLED] > 0) == (interrupts == 2), "the first drains, the second stops"
    assert set(of) <= {Status.OK, Status.CANCELLED, Status.NOT_SENT}
    assert of.total() - of[Status.NOT_SENT] == sum(h.sent for h in driven.result.health) < 600


def test_a_target_that_the_nodes_do_not_reach_is_said_with_the_node(drive: Drive, hosts: RayHosts) -> None:
    server = TruthServer(QUICK)
    with server:
        base_url = server.base_url

        def requests() -> Iterator[Request]:
            server.close()
            yield from asked(3)

        with pytest.raises(MeasureError, match=r"Node alpha: No connection to 127\.0\.0\.1"):
            drive(base_url, requests(), cap=3, workers=3, endless=True, muster=hosts.muster)


def test_a_bridge_that_dies_takes_the_workers_with_it_and_is_said(drive: Drive, hosts: RayHosts) -> None:
    kill = once_after(1_000_000_000, hosts.abandon)
    with TruthServer(QUICK) as server:
        driven = drive(server.base_url, asked(300, gap_ns=20_000_000), workers=3, listener=kill, muster=hosts.muster)
        assert driven.result.error is not None
        assert "The process that speaks to Ray has ended" in driven.result.error
        assert {r.status for r in driven.records} == {Status.OK, Status.LOST}
        with pytest.raises(MeasureError, match="The process that speaks to Ray has ended"):
            drive(server.base_url, asked(3), cap=3, workers=3, muster=hosts.muster)


# What is refused.


def test_no_cluster_there_is_one_sentence(tmp_path: Path) -> None:
    for address in ("127.0.0.1:9", "ray://127.0.0.1:9"):
        with pytest.raises(MeasureError, match=f"No Ray cluster answers at {address}: connection refused"):
            RayHosts(address, tmp_path / "log", 1)
    with pytest.raises(MeasureError, match="is no address of a Ray cluster"):
        RayHosts("127.0.0.1:port", tmp_path / "log", 1)


def test_more_workers_than_ray_has_cores_is_one_sentence(nodes: RayNodes, tmp_path: Path) -> None:
    change = "import withstand.load.ray.crew as crew; crew._PLACE_NS = 15_000_000_000"
    errors = _errors(_changed_bridge(change, nodes.address, *_mustering(tmp_path, 4)))
    assert errors == ["Ray has no free core on node alpha; free one, or use fewer --workers."]


def test_another_ray_is_one_sentence(nodes: RayNodes) -> None:
    (word,) = _changed_bridge("import ray; ray.__version__ = '1.0.0'", nodes.address)
    assert word.refused is not None
    assert re.search(r"is of another version; use the same Ray and the same Python .* Ray: 1\.0\.0", word.refused)


def test_another_withstand_is_one_sentence(nodes: RayNodes, tmp_path: Path) -> None:
    change = "import withstand; withstand.__version__ = '0.0.1'"
    (error,) = _errors(_changed_bridge(change, nodes.address, *_mustering(tmp_path, 1)))
    assert re.match(r"Node alpha has withstand .*, this machine 0\.0\.1; install the same\.", error)


def test_a_client_server_that_ray_lost_at_birth_is_asked_for_another(nodes: RayNodes) -> None:
    (word,) = _changed_bridge(
        """if True:
        import ray
        really, asked = ray.init, []

        def init(*arguments, **options):
            asked.append(arguments)
            if len(asked) == 1:
                raise ConnectionAbortedError("RuntimeError: Starting Ray client server failed. See its log.")
            return really(*arguments, **options)

        ray.init = init""",
        nodes.client_address,
    )
    assert word.hosts == NAMES


def _mustering(tmp_path: Path, workers: int) -> tuple[Order, Order]:
    """Orders for so many workers with nothing to send."""
    spool = tmp_path / "requests"
    spool.touch()
    job = job_for("http://127.0.0.1:9", spool=str(spool), records=str(tmp_path / "records"))
    jobs = tuple(msgspec.structs.replace(job, worker=worker) for worker in range(workers))
    return Order(muster=jobs), Order(prepare=True)


def _errors(words: list[Word]) -> list[str]:
    return [word.report.error for word in words if word.report and word.report.error]


def _changed_bridge(change: str, address: str, *orders: Order) -> list[Word]:
    """What a bridge says that has been tampered with beforehand."""
    code = f"{change}\nfrom withstand.load.ray.__main__ import main; main({address!r}, 1)"
    lines = b"".join(msgspec.json.encode(order) + b"\n" for order in orders)
    done = subprocess.run([sys.executable, "-c", code], input=lines, capture_output=True, timeout=180, check=False)
    return [msgspec.json.decode(line, type=Word) for line in done.stdout.splitlines()]


# The token.

TOKEN = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def guarded(home: Path) -> Iterator[RayNodes]:
    """A cluster that wants a token."""
    with RayNodes(("omega",), TOKEN) as nodes:
        yield nodes


def one_answer(drive: Drive, address: str, log: Path) -> tuple[str, ...]:
    """The hosts of a cluster on which a worker really works."""
    with RayHosts(address, log, 1) as hosts, TruthServer(QUICK) as server:
        driven = drive(server.base_url, asked(1), cap=1, muster=hosts.muster)
    assert [r.status for r in driven.records] == [Status.OK]
    assert not hosts.started
    return hosts.hosts


@pytest.mark.parametrize("way", ["address", "client_address"])
def test_a_token_that_is_given_is_shown_to_a_cluster_that_wants_one(
    drive: Drive, guarded: RayNodes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, way: str
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    assert one_answer(drive, getattr(guarded, way), tmp_path / "log") == ("omega",)


@pytest.mark.parametrize("way", ["address", "client_address"])
def test_a_token_that_is_given_does_no_harm_where_none_is_wanted(
    drive: Drive, nodes: RayNodes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, way: str
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    assert one_answer(drive, getattr(nodes, way), tmp_path / "log") == NAMES


@pytest.mark.parametrize("way", ["address", "client_address"])
@pytest.mark.parametrize("env", [{}, {"RAY_AUTH_TOKEN": TOKEN, "RAY_AUTH_MODE": "disabled"}], ids=["none", "withheld"])
def test_a_cluster_that_is_shown_no_token_but_wants_one_is_said_at_once(
    guarded: RayNodes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, way: str, env: dict[str, str]
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(MeasureError, match=r"The Ray cluster at .* wants a token\. Set RAY_AUTH_TOKEN, or"):
        RayHosts(getattr(guarded, way), tmp_path / "log", 1)


def test_a_token_that_the_head_does_not_want_is_said_where_ray_was_told_to_show_it(
    nodes: RayNodes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with pytest.raises(MeasureError, match=r"asks for no token, .*: set RAY_AUTH_MODE=disabled"):
        RayHosts(nodes.address, tmp_path / "log", 1)


# The command line.


@contextmanager
def withstand(*arguments: str, cwd: Path, **env: str) -> "Iterator[subprocess.Popen[str]]":
    """A run, which does not outlive the test."""
    run = subprocess.Popen(
        [*RUN, *arguments],
        cwd=cwd,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with run:
        try:
            yield run
        finally:
            run.kill()


def test_through_ray_s_own_client_and_the_key_stands_nowhere(nodes: RayNodes, tmp_path: Path) -> None:
    key = "sk-a-key-that-must-not-be-written-down"
    with (
        TruthServer(QUICK, behaviour={"plain": 0.5, "http_500": 0.5}) as server,
        withstand(
            *("--base-url", server.base_url, "--api-key-env", "KEY", "--fleet", nodes.client_address),
            *("--request-rate", "40", "--num-prompts", "60", "--num-warmups", "0"),
            cwd=tmp_path,
            KEY=key,
        ) as run,
    ):
        out, err = run.communicate(timeout=240)
    assert "Joined a Ray cluster with 3 nodes: alpha, beta, gamma" in err
    assert "Successful requests:" in out
    records = list(RunFolder.open(tmp_path / "r").records())
    assert Counter(r.worker for r in records) == {0: 20, 1: 20, 2: 20}
    files = [p for folder in (tmp_path, nodes.session) for p in folder.rglob("*") if p.is_file()]
    assert len(files) > 20
    assert not [p for p in files if key.encode() in content_of(p)]
    assert key not in out + err


def content_of(path: Path) -> bytes:
    """Ray takes some of its files away while we look."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def test_a_cluster_that_was_started_for_the_run_ends_with_it(home: Path, tmp_path: Path) -> None:
    mark = f"WITHSTAND_TEST={tmp_path}"
    with (
        TruthServer(QUICK) as server,
        withstand(
            *("--base-url", server.base_url, "--fleet", "ray:local", "--workers", "2"),
            *("--request-rate", "20", "--num-prompts", "20000"),
            cwd=tmp_path,
            WITHSTAND_TEST=str(tmp_path),
        ) as run,
    ):
        until(lambda: len(server.truth()) > 20, "the new cluster's workers send")
        assert len(processes_with(mark)) > 5
        os.killpg(run.pid, signal.SIGINT)
        out, err = run.communicate(timeout=240)
    assert run.returncode == 3
    assert "Successful requests:" in out
    assert [line for line in err.splitlines() if "ray" in line.lower()] == [
        line for line in err.splitlines() if line.startswith("Started a Ray cluster with 1 node: ")
    ]
    statuses = Counter(r.status for r in RunFolder.open(tmp_path / "r").records())
    assert statuses[Status.OK] > 20
    assert set(statuses) <= {Status.OK, Status.NOT_SENT}, "what was due at that very moment is not sent any more"
    until(lambda: not processes_with(mark), "the cluster that was started ends")
    assert not list(home.rglob("*token*")), "what Ray would do when it is next started is not changed"


def test_a_run_that_is_killed_leaves_nothing_on_the_nodes(nodes: RayNodes, tmp_path: Path) -> None:
    with (
        TruthServer(QUICK) as server,
        withstand(
            *("--base-url", server.base_url, "--fleet", "ray", "--request-rate", "20", "--num-prompts", "20000"),
            cwd=tmp_path,
            RAY_ADDRESS=nodes.address,
        ) as run,
    ):
        until(lambda: len(server.truth()) > 20, "the workers on the nodes send")
        assert len(nodes.ours()) == 3
        run.kill()
        run.communicate()
        workers_end(nodes)
