"""Workers leave the texts of good answers behind where somebody will count them, and nowhere else."""

from pathlib import Path

import msgspec

from driving import ASK, Drive, asked
from withstand.load.texts import place_of, read_texts
from withstand.record import Status
from withstand.testing import Schedule, TruthServer

QUICK = Schedule(ttft_ms=5, itl_ms=1, tokens=6)


def test_every_text_whole_reasoning_included(drive: Drive, tmp_path: Path) -> None:
    with TruthServer(QUICK, behaviour="reasoning:2+split") as server:
        drive(server.base_url, asked(9, tokens=6), cap=3, workers=2, text_share=1.0)
    texts = dict(read_texts(tmp_path / "work"))
    assert texts == dict.fromkeys(range(9), "t0 t1 t2 t3 t4 t5")


def test_answers_without_a_stream_have_texts_too(drive: Drive, tmp_path: Path) -> None:
    with TruthServer(QUICK) as server:
        drive(server.base_url, asked(2), cap=1, text_share=1.0, ask=msgspec.structs.replace(ASK, stream=False))
    assert dict(read_texts(tmp_path / "work")) == dict.fromkeys(range(2), "t0 t1 t2 t3 t4")


def test_a_share_is_drawn_by_the_ids(drive: Drive, tmp_path: Path) -> None:
    with TruthServer(QUICK) as server:
        drive(server.base_url, asked(40), cap=8, text_share=0.4)
    assert {answer for answer, _ in read_texts(tmp_path / "work")} == {i for i in range(40) if place_of(i) < 0.4}


def test_failures_leave_no_text(drive: Drive, tmp_path: Path) -> None:
    with TruthServer(QUICK, behaviour="error_midstream") as server:
        driven = drive(server.base_url, asked(3), cap=1, text_share=1.0)
    assert {r.status for r in driven.records} == {Status.STREAM_ERROR}
    assert list(read_texts(tmp_path / "work")) == []


def test_a_secret_that_the_server_quotes_is_not_written(drive: Drive, tmp_path: Path) -> None:
    with TruthServer(QUICK) as server:
        drive(server.base_url, asked(1), cap=1, text_share=1.0, secrets=("t1 t2",))
    ((_, text),) = read_texts(tmp_path / "work")
    assert "t1 t2" not in text


def test_nobody_counts_nothing_is_kept(drive: Drive, tmp_path: Path) -> None:
    with TruthServer(QUICK) as server:
        drive(server.base_url, asked(2), cap=1)
    assert not list((tmp_path / "work").glob("texts*"))
