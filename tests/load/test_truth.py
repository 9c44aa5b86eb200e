"""Our numbers against a server of known times, over every kind of connection."""

from pathlib import Path
from statistics import median

import pytest

from driving import Drive, asked
from withstand.record import Clock, Record, Status
from withstand.request import Message, Request
from withstand.testing import Schedule, Served, TruthServer
from withstand.testing.certs import make_certificates

ERROR_MS_MAX = 0.3
PACED = Schedule(ttft_ms=40, itl_ms=10, tokens=25)


def ours(records: list[Record]) -> dict[str, float]:
    sent = [(r, r.sent_ns) for r in records if r.sent_ns is not None]
    return {
        "ttft": median((r.chunk_ns[0] - s) / 1e6 for r, s in sent),
        "tpot": median((r.chunk_ns[-1] - r.chunk_ns[0]) / 1e6 / (len(r.chunk_ns) - 1) for r, _ in sent),
        "itl": median((b - a) / 1e6 for r, _ in sent for a, b in zip(r.chunk_ns, r.chunk_ns[1:], strict=False)),
        "e2el": median((r.chunk_ns[-1] - s) / 1e6 for r, s in sent),
    }


def theirs(served: list[Served]) -> dict[str, float]:
    return {
        "ttft": median(s.ttft_ms for s in served if s.ttft_ms is not None),
        "tpot": median(s.tpot_ms for s in served if s.tpot_ms is not None),
        "itl": median((b - a) / 1e6 for s in served for a, b in zip(s.token_ns, s.token_ns[1:], strict=False)),
        "e2el": median(s.e2el_ms for s in served if s.e2el_ms is not None),
    }


def test_medians_are_true_at_a_thousand_tokens_a_second(drive: Drive) -> None:
    """40 requests a second of 25 tokens each; server and client read the same clock.

    Medians, since a send that loses its core between stamp and call moves a mean, and machines may be busy.
    """
    with TruthServer(PACED) as server:
        driven = drive(server.base_url, asked(120, tokens=25, gap_ns=25_000_000))
        truth = server.truth()
    assert [r.status for r in driven.records] == [Status.OK] * 120
    assert sum(r.output_tokens or 0 for r in driven.records) == sum(s.tokens for s in truth) == 120 * 25
    found, true = ours(driven.records), theirs(truth)
    for metric, value in found.items():
        assert value == pytest.approx(true[metric], abs=ERROR_MS_MAX), metric


@pytest.mark.parametrize("family", ["ipv4", "ipv6", "unix"])
def test_families(drive: Drive, family: str) -> None:
    with TruthServer(PACED, family=family) as server:
        driven = drive(server.base_url, asked(8, tokens=5), cap=4)
    assert [(r.status, r.output_tokens) for r in driven.records] == [(Status.OK, 5)] * 8
    assert {r.clock for r in driven.records} <= ({Clock.USER} if family == "unix" else {Clock.KERNEL, Clock.USER})


def test_tls_is_verified(drive: Drive, tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    with TruthServer(PACED, tls=certificates.server) as server:
        trusted = drive(server.base_url, asked(6), cap=2, cacert=str(certificates.ca))
        assert [(r.status, r.output_tokens) for r in trusted.records] == [(Status.OK, 5)] * 6
        assert any(r.reused for r in trusted.records)
        _empty(tmp_path)
        stranger = drive(server.base_url, asked(2), cap=2)
        assert [r.status for r in stranger.records] == [Status.TLS_ERROR] * 2
        assert "certificate" in (stranger.records[0].error or "") or "signed" in (stranger.records[0].error or "")
        _empty(tmp_path)
        careless = drive(server.base_url, asked(2), cap=2, insecure=True)
        assert [r.status for r in careless.records] == [Status.OK] * 2


def _empty(folder: Path) -> None:
    for path in folder.glob("records.*"):
        path.unlink()


def test_a_large_body_and_a_long_answer(drive: Drive) -> None:
    with TruthServer(Schedule(ttft_ms=1, itl_ms=0, tokens=2_000)) as server:
        driven = drive(server.base_url, asked(3, tokens=None, text="x" * 1_000_000), cap=3)
        truth = server.truth()
    assert [(r.status, r.output_tokens) for r in driven.records] == [(Status.OK, 2_000)] * 3
    assert {s.prompt_chars for s in truth} == {1_000_002}


def test_a_conversation_carries_the_real_answers(drive: Drive) -> None:
    def said(text: str) -> tuple[Message, ...]:
        return (Message(role="user", content=text),)

    turns = [
        Request(id=i, session=0, turn=i, last_turn=i == 2, think_ns=30_000_000, messages=said(f"q{i}"), output_tokens=3)
        for i in range(3)
    ]
    with TruthServer(PACED, keep_bodies=True) as server:
        driven = drive(server.base_url, turns, cap=1)
        bodies = [s.body for s in server.truth()]
    assert [r.status for r in driven.records] == [Status.OK] * 3
    assert [[m["role"] for m in b["messages"]] for b in bodies] == [
        ["user"],
        ["user", "assistant", "user"],
        ["user", "assistant", "user", "assistant", "user"],
    ]
    assert bodies[2]["messages"][:3] == bodies[1]["messages"]
    assert bodies[1]["messages"][1]["content"]
    first, second = driven.records[:2]
    assert first.end_ns is not None
    assert second.scheduled_ns is not None
    assert second.scheduled_ns - first.end_ns >= 29_000_000
