"""Every way in which a server may behave ends in the status that a right client reports, with the right counts."""

import pytest

from driving import Drive, asked
from withstand.record import Record, Status
from withstand.testing import Right, Schedule, TruthServer, expected
from withstand.testing.truth.behaviours import BEHAVIOURS, style_of, tally

SCHEDULE = Schedule(ttft_ms=5, itl_ms=1, tokens=6)


@pytest.mark.parametrize("name", sorted(BEHAVIOURS))
def test_status_and_tokens(drive: Drive, name: str) -> None:
    behaviour = BEHAVIOURS[name]
    with TruthServer(SCHEDULE, behaviour=name) as server:
        driven = drive(server.base_url, asked(4, tokens=6), cap=2)
        truth = server.truth()
    assert [r.status for r in driven.records] == [behaviour.status] * 4, driven.records[0].error
    assert driven.result.error is None
    if behaviour.status is not Status.OK:
        assert all(r.error for r in driven.records)
        return
    rights = [expected(name, served) for served in truth if served.done_ns is not None]
    assert counts(driven.records) == sorted(counts_of(right) for right in rights)
    if name != "no_stream":
        assert sorted(len(r.chunk_ns) for r in driven.records) == sorted(r.output_events or 0 for r in rights)


def counts(records: list[Record]) -> list[tuple[int | None, str | None, str | None]]:
    return sorted((r.output_tokens, r.tokens_from, r.finish_reason) for r in records)


def counts_of(right: Right) -> tuple[int | None, str | None, str | None]:
    return right.output_tokens, right.tokens_from, right.finish_reason


def test_failures_by_kind_are_exact(drive: Drive) -> None:
    mix = {"plain": 0.6, "http_500": 0.1, "limited": 0.1, "error_midstream": 0.1, "cut_short": 0.1}
    with TruthServer(SCHEDULE, behaviour=mix, seed=3) as server:
        driven = drive(server.base_url, asked(50), cap=5)
    kinds = tally(mix, 3, 50)
    found = {status: sum(r.status is status for r in driven.records) for status in Status}
    assert {s: n for s, n in found.items() if n} == {
        style_status: sum(n for name, n in kinds.items() if BEHAVIOURS[name].status is style_status)
        for style_status in {BEHAVIOURS[name].status for name in kinds}
    }
    assert style_of("plain")


def test_a_limiter_says_when_to_come_back(drive: Drive) -> None:
    with TruthServer(SCHEDULE, behaviour="limited") as server:
        driven = drive(server.base_url, asked(1), cap=1)
    assert (driven.records[0].http_status, driven.records[0].retry_after_s) == (429, 1.0)


def test_promised_keep_alive_that_is_not_kept_costs_no_request(drive: Drive) -> None:
    with TruthServer(SCHEDULE, behaviour="close_after_response") as server:
        driven = drive(server.base_url, asked(30), cap=3)
    assert {r.status for r in driven.records} == {Status.OK}


def test_several_at_once(drive: Drive) -> None:
    with TruthServer(SCHEDULE, behaviour="reasoning:2+split+crlf+comments+no_space") as server:
        driven = drive(server.base_url, asked(6, tokens=6), cap=2)
    assert [(r.status, len(r.chunk_ns), r.output_tokens) for r in driven.records] == [(Status.OK, 6, 6)] * 6
