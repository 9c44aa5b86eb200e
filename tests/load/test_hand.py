"""The hand on another machine, without Ray between: what it carries, what it leaves behind."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from driving import asked, job_for
from withstand import __version__, clock
from withstand.load.job import Command, Report
from withstand.load.ray.hand import Hand, Haul
from withstand.record import Record, Status, decode_record
from withstand.testing import Schedule, TruthServer
from withstand.testing.certs import make_certificates

QUICK = Schedule(ttft_ms=5, itl_ms=1, tokens=5)
START = 50_000_000


@pytest.fixture
def hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hand]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    hand = Hand()
    yield hand
    hand.close()
    assert not list(tmp_path.glob("withstand-*"))


def spool_of(count: int) -> bytes:
    lines = [msgspec.json.encode(request) for request in asked(count, gap_ns=2_000_000)]
    return b"".join(line + b"\n" for line in [*lines, b'"end"'])


def drive(hand: Hand, start_ns: int) -> tuple[list[Haul], list[Record]]:
    """From ready to the end."""
    hauls = [hand.poll(5.0)]
    assert msgspec.json.decode(hauls[0].lines[0], type=Report).ready
    hand.tell(msgspec.json.encode(Command(start_ns=start_ns)))
    while hauls[-1].gone is None:
        hauls.append(hand.poll(0.1))
    assert all(haul.records.endswith(b"\n") for haul in hauls if haul.records)
    lines = b"".join(haul.records for haul in hauls).splitlines()
    return hauls, [decode_record(line) for line in lines]


def test_bytes_go_in_and_records_come_out(hand: Hand, tmp_path: Path) -> None:
    spool = spool_of(60)
    with TruthServer(QUICK) as server:
        assert hand.about().version == __version__
        for at in range(0, len(spool), 1000):
            hand.feed(spool[at : at + 1000])
        assert hand.open(job_for(server.base_url, worker=3), None) is None
        hauls, records = drive(hand, clock.now_ns() + START)
    assert sorted(r.id for r in records) == list(range(60))
    assert {(r.status, r.worker) for r in records} == {(Status.OK, 3)}
    last = msgspec.json.decode(hauls[-1].lines[-1] if hauls[-1].lines else hauls[-2].lines[-1], type=Report)
    assert last.health is not None
    assert hauls[-1].gone == "exit status 0"


def test_once_the_worker_has_begun_no_file_has_a_name(hand: Hand, tmp_path: Path) -> None:
    """So that nothing can stay behind, should this host's processes be killed."""
    with TruthServer(QUICK) as server:
        hand.feed(spool_of(5))
        hand.open(job_for(server.base_url, worker=3), None)
        assert list(tmp_path.glob("withstand-*/*"))
        hand.poll(5.0)
        assert not list(tmp_path.glob("withstand-*"))


def test_a_target_that_this_host_does_not_reach_is_said(hand: Hand) -> None:
    with TruthServer(QUICK) as server:
        base_url = server.base_url
    told = hand.open(job_for(base_url), None)
    assert told is not None
    assert "No connection to 127.0.0.1" in told


def test_a_load_that_this_host_cannot_carry_is_said(hand: Hand) -> None:
    with TruthServer(QUICK) as server:
        told = hand.open(job_for(server.base_url, cap=2_000_000_000), None)
    assert told is not None
    assert "open files" in told


def test_the_authority_s_certificate_travels(hand: Hand, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    certificates = make_certificates(tmp_path)
    with TruthServer(QUICK, tls=certificates.server) as server:
        hand.feed(spool_of(5))
        told = hand.open(job_for(server.base_url, cacert="/only/on/the/first/host.pem"), certificates.ca.read_bytes())
        assert told is None
        _, records = drive(hand, clock.now_ns() + START)
    assert {r.status for r in records} == {Status.OK}


def test_the_answers_texts_come_out_too(hand: Hand, tmp_path: Path) -> None:
    """The job names a folder of the run's own machine, which is not here."""
    with TruthServer(QUICK) as server:
        hand.feed(spool_of(40))
        texts = str(tmp_path / "only-on-the-first-host" / "texts.w0.jsonl")
        assert hand.open(job_for(server.base_url, texts=texts, text_share=1.0), None) is None
        hauls, _ = drive(hand, clock.now_ns() + START)
    lines = b"".join(haul.texts for haul in hauls).splitlines()
    assert sorted(msgspec.json.decode(line)[0] for line in lines) == list(range(40))


def test_a_worker_that_dies_is_noticed(hand: Hand) -> None:
    with TruthServer(QUICK) as server:
        hand.feed(spool_of(5))
        hand.open(job_for(server.base_url, worker=3), None)
        hand.poll(5.0)
        assert hand._child is not None
        hand._child.kill()
        deadline = time.monotonic() + 10
        while (haul := hand.poll(0.1)).gone is None:
            assert time.monotonic() < deadline
    assert haul.gone == "exit status -9"
