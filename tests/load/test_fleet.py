"""Workers as processes: the same plan whatever their number, and what happens when one of us is stopped or dies."""

import importlib.util
import json
import os
import signal
import time
from pathlib import Path

import msgspec
import pytest

from driving import Drive, asked, interrupting
from withstand.errors import ClientLimitError, MeasureError, UsageError
from withstand.load import stage
from withstand.load.fleet import LocalFleet
from withstand.load.fleets import hosts_of
from withstand.load.job import Command, Report
from withstand.load.limits import ensure_descriptors, ensure_ports
from withstand.record import Record, Status
from withstand.testing import Schedule, TruthServer
from withstand.wire import Ask

QUICK = Schedule(ttft_ms=5, itl_ms=1, tokens=5)
SLOW = Schedule(ttft_ms=100, itl_ms=50, tokens=40)


def test_one_two_or_eight_workers_send_the_same_requests_at_the_same_planned_times(drive: Drive) -> None:
    plans = []
    for workers in (1, 2, 8):
        with TruthServer(QUICK, keep_bodies=True) as server:
            driven = drive(server.base_url, asked(40, gap_ns=5_000_000), workers=workers)
            bodies = sorted(json.dumps(s.body) for s in server.truth())
        assert {r.status for r in driven.records} == {Status.OK}
        assert len({r.worker for r in driven.records}) == workers
        assert sum(h.sent for h in driven.result.health) == 40
        planned = [(r.id, (r.scheduled_ns or 0) - driven.result.started_ns) for r in driven.records]
        plans.append((planned, bodies))
    assert plans[0] == plans[1] == plans[2]
    assert plans[0][0] == [(i, i * 5_000_000) for i in range(40)]


def test_all_workers_begin_at_one_instant(drive: Drive) -> None:
    """The first request of each is due at the start; none is sent before it."""
    with TruthServer(QUICK) as server:
        requests = [msgspec.structs.replace(r, due_ns=0) for r in asked(4)]
        driven = drive(server.base_url, requests, workers=4)
    assert {r.worker for r in driven.records} == {0, 1, 2, 3}
    assert all((r.started_ns or 0) >= driven.result.started_ns for r in driven.records)
    assert {r.scheduled_ns for r in driven.records} == {driven.result.started_ns}


def test_a_cap_holds_over_all_workers(drive: Drive) -> None:
    with TruthServer(Schedule(ttft_ms=30, itl_ms=1, tokens=5), keep_bodies=False) as server:
        driven = drive(server.base_url, asked(30), cap=3, workers=2)
    moments = sorted([(r.sent_ns or 0, 1) for r in driven.records] + [(r.end_ns or 0, -1) for r in driven.records])
    running, most = 0, 0
    for _, change in moments:
        running += change
        most = max(most, running)
    assert most <= 3


def test_open_loop_does_not_wait_for_a_server_that_hangs(drive: Drive) -> None:
    with TruthServer(QUICK, behaviour="hang") as server:
        driven = drive(server.base_url, asked(20, gap_ns=10_000_000))
    assert {r.status for r in driven.records} == {Status.TIMEOUT}
    lateness_ms = [((r.started_ns or 0) - (r.ready_ns or 0)) / 1e6 for r in driven.records]
    assert max(lateness_ms) < 100


def test_a_duration_ends_a_closed_loop_and_what_runs_may_finish(drive: Drive) -> None:
    def endless() -> object:
        i = 0
        while True:
            yield asked(i + 1)[i]
            i += 1

    with TruthServer(Schedule(ttft_ms=20, itl_ms=2, tokens=5)) as server:
        driven = drive(server.base_url, endless(), cap=2, endless=True, duration_ns=400_000_000)
    assert {r.status for r in driven.records} == {Status.OK}
    assert 10 <= len(driven.records) <= 60


def test_connections_are_opened_beforehand(drive: Drive) -> None:
    with TruthServer(QUICK) as server:
        driven = drive(server.base_url, asked(8, gap_ns=1_000_000), preconnect=30, workers=2)
        served = server.truth()
    assert [r.status for r in driven.records] == [Status.OK] * 8
    assert not any(r.reused for r in driven.records)
    assert sum(h.connections_max for h in driven.result.health) == 30
    assert sum(h.dials or 0 for h in driven.result.health) == 30
    assert len(served) == 8


def test_connections_that_were_opened_beforehand_are_counted_once(drive: Drive) -> None:
    with TruthServer(SLOW) as server:
        (dialled,) = drive(server.base_url, asked(1)).result.health
        (opened,) = drive(server.base_url, asked(1), preconnect=50).result.health
    assert opened.connections_max == 50
    assert opened.descriptors_max - dialled.descriptors_max == 49


def test_at_the_end_of_a_stage_what_was_due_is_written_and_the_rest_of_the_plan_is_not_read(drive: Drive) -> None:
    requests = asked(20_000, gap_ns=100_000_000, text="y" * 3_000)
    with TruthServer(SLOW) as server:
        driven = drive(server.base_url, requests, cap=2, duration_ns=950_000_000)
    assert [r.id for r in driven.records] == list(range(10))
    assert Status.NOT_SENT in {r.status for r in driven.records}
    assert driven.result.health[0].rss_bytes_max < 100_000_000


def test_first_interrupt_drains(drive: Drive) -> None:
    with TruthServer(Schedule(ttft_ms=50, itl_ms=10, tokens=40)) as server:
        driven = drive(server.base_url, asked(400, tokens=40, gap_ns=20_000_000), listener=interrupting(0.6))
    assert driven.result.interrupted
    assert {r.status for r in driven.records} <= {Status.OK, Status.NOT_SENT}, "what is due just then is not sent"
    assert 5 < len(driven.records) < 200


def test_second_interrupt_stops_at_once_and_loses_nothing(drive: Drive) -> None:
    with TruthServer(SLOW) as server:
        requests, stops = asked(400, tokens=40, gap_ns=20_000_000), interrupting(0.8, 1.3)
        driven = drive(server.base_url, requests, drain_ns=60_000_000_000, listener=stops)
    assert driven.result.interrupted
    assert {r.status for r in driven.records} <= {Status.OK, Status.CANCELLED}
    assert Status.CANCELLED in {r.status for r in driven.records}
    sent = sum(h.sent for h in driven.result.health)
    assert len(driven.records) == sent
    assert (driven.result.ended_ns - driven.result.started_ns) / 1e9 < 5


def test_a_dead_worker_is_noticed_and_its_records_stay(drive: Drive) -> None:
    killed: list[int] = []

    def kill_one(report: object, since_start_ns: int) -> None:
        if since_start_ns > 400_000_000 and not killed:
            child = _worker_pids()[0]
            killed.append(child)
            os.kill(child, signal.SIGKILL)

    with TruthServer(Schedule(ttft_ms=60, itl_ms=2, tokens=5)) as server:
        driven = drive(server.base_url, asked(100, gap_ns=10_000_000), workers=2, listener=kill_one)
    assert driven.result.error is not None
    assert "died" in driven.result.error
    assert sorted(h.lost for h in driven.result.health) == [False, True]
    lost = [r for r in driven.records if r.status is Status.LOST]
    finished = [sum(r.worker == w and r.status is Status.OK for r in driven.records) for w in (0, 1)]
    assert max(finished) == 50
    assert 5 < min(finished) < 50
    assert 0 < len(lost) < 10
    assert len({r.id for r in driven.records}) == len(driven.records)


def test_a_frozen_worker_is_ended_after_the_second_interrupt(drive: Drive) -> None:
    frozen: list[int] = []
    interrupt = interrupting(1.0, 1.5)

    def freeze_one(report: object, since_start_ns: int) -> None:
        interrupt(report, since_start_ns)
        if since_start_ns > 300_000_000 and not frozen:
            frozen.extend(_worker_pids()[:1])
            os.kill(frozen[0], signal.SIGSTOP)

    with TruthServer(SLOW) as server:
        driven = drive(server.base_url, asked(100, tokens=40, gap_ns=10_000_000), workers=2, listener=freeze_one)
    assert driven.result.interrupted
    assert Status.LOST in {r.status for r in driven.records}
    assert (driven.result.ended_ns - driven.result.started_ns) / 1e9 < 8


def test_a_worker_that_falls_silent_is_given_up(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_SILENCE_NS", 3_000_000_000)
    frozen: list[int] = []
    silences_ns = []

    def freeze_one(report: Report, since_start_ns: int) -> None:
        silences_ns.append(report.silent_ns)
        if since_start_ns > 300_000_000 and not frozen:
            frozen.extend(_worker_pids()[:1])
            os.kill(frozen[0], signal.SIGSTOP)

    with TruthServer(QUICK) as server:
        driven = drive(server.base_url, asked(100, gap_ns=10_000_000), workers=2, listener=freeze_one)
    assert driven.result.error is not None
    assert "said nothing for 3 s" in driven.result.error
    assert sorted(h.lost for h in driven.result.health) == [False, True]
    assert Status.LOST in {r.status for r in driven.records}
    assert len(driven.records) == 100
    assert max(silences_ns) > 1_000_000_000
    assert not _worker_pids()


def test_while_we_are_away_ourselves_no_worker_is_silent(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_SILENCE_NS", 2_000_000_000)
    away: list[int] = []

    def look_away(_report: Report, since_start_ns: int) -> None:
        if not away:
            away.append(since_start_ns)
            for pid in _worker_pids():
                os.kill(pid, signal.SIGSTOP)
            time.sleep(3)
            for pid in _worker_pids():
                os.kill(pid, signal.SIGCONT)

    with TruthServer(QUICK) as server:
        driven = drive(server.base_url, asked(20, gap_ns=10_000_000), listener=look_away)
    assert away
    assert driven.result.error is None


def _worker_pids() -> list[int]:
    """Our children that are workers."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            stat = (path / "stat").read_text().rpartition(")")[2].split()
            command = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if int(stat[1]) == os.getpid() and b"withstand.load.worker" in command:
            found.append(int(path.name))
    return sorted(found)


def test_a_worker_that_cannot_begin_says_why(drive: Drive, tmp_path: Path) -> None:
    (tmp_path / "records.w0.jsonl").mkdir()
    with TruthServer(QUICK) as server, pytest.raises(MeasureError, match="cannot be written"):
        drive(server.base_url, asked(1), cap=1)


def test_refused_connections_are_counted_not_hidden(drive: Drive) -> None:
    with TruthServer(QUICK) as server:
        base_url = server.base_url
        records: list[Record] = []

        def stop(report: object, since_start_ns: int) -> None:
            if since_start_ns > 200_000_000:
                server.close()

        records = drive(base_url, asked(60, gap_ns=10_000_000), listener=stop, ask=Ask(model="truth")).records
    assert len(records) == 60
    assert {r.status for r in records} <= {Status.OK, Status.REFUSED, Status.RESET, Status.TRUNCATED}
    assert Status.REFUSED in {r.status for r in records}


def test_more_connections_than_files_allowed_is_refused_beforehand() -> None:
    with pytest.raises(ClientLimitError, match="open files"):
        ensure_descriptors(2_000_000_000)
    assert ensure_descriptors(10) >= 74


def test_more_connections_than_ports_is_refused_beforehand() -> None:
    with pytest.raises(ClientLimitError, match="local ports"):
        ensure_ports(70_000, over_tcp=True)
    ensure_ports(70_000, over_tcp=False)
    ensure_ports(None, over_tcp=True)


def test_ray_that_is_not_installed_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with (
        pytest.raises(UsageError, match=r"--fleet ray needs Ray: install withstand's extra 'ray' "),
        hosts_of("ray", tmp_path / "log", 1),
    ):
        pass
    with hosts_of("local", tmp_path / "log", 1) as hosts:
        assert hosts.names == ()


def test_a_stop_that_comes_with_the_start_is_obeyed(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both lines may be read at once; nothing follows that would wake the worker for the second."""

    def tell_both(fleet: LocalFleet, command: Command) -> None:
        both = b"\n".join(msgspec.json.encode(c) for c in (command, Command(stop=True)))
        for child in fleet._children:
            child.send(both)

    monkeypatch.setattr(LocalFleet, "tell", tell_both)
    with TruthServer(SLOW) as server:
        driven = drive(server.base_url, asked(100, gap_ns=100_000_000))
    assert (driven.result.ended_ns - driven.result.started_ns) / 1e9 < 5


def test_a_closed_loop_does_not_burn_its_prompts_on_a_server_that_has_died(drive: Drive) -> None:
    unheard: list[bool] = []
    with TruthServer(Schedule(ttft_ms=20, itl_ms=2, tokens=5)) as server:

        def die(report: Report, since_start_ns: int) -> None:
            if since_start_ns > 500_000_000:
                server.close()
            unheard.append(report.unheard_ns > 0)

        driven = drive(server.base_url, asked(3000), cap=4, workers=2, listener=die, duration_ns=3_000_000_000)
    good = [r for r in driven.records if r.status is Status.OK]
    failed = [r for r in driven.records if r.first_byte_ns is None and r.status is not Status.NOT_SENT]
    assert good
    assert not unheard[0]
    assert any(unheard)
    assert 4 < len(failed) < 60, "doubled eight times, each of four pauses is a second"
    assert len(driven.records) < 3000
