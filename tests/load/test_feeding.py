"""How far ahead requests are made, and read: enough for what is due, and no more than there is time for."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import msgspec
import pytest

from driving import asked, job_for
from withstand import clock
from withstand.load.sender import Sender
from withstand.load.spool import SpoolWriter
from withstand.load.stage import Stripes, _Feeder
from withstand.load.transport import Transport
from withstand.request import Message, Request

LARGE = Message(role="user", content="word " * 3_000)


@contextmanager
def sender_of(folder: Path, requests: list[Request]) -> Iterator[Sender]:
    job = job_for("http://127.0.0.1:1")
    with SpoolWriter(folder, 1) as spool:
        for request in requests:
            spool.write(request)
        spool.finish()
        job = msgspec.structs.replace(job, spool=str(spool.path(0)), records=str(folder / "records.jsonl"))
        sender = Sender(job, cast("Transport", None))
        yield sender
        sender.close(clock.now_ns())


def conversations(count: int, turns: int) -> list[Request]:
    return [
        Request(id=s * turns + t, session=s, turn=t, last_turn=t == turns - 1, messages=(LARGE,))
        for s, t in itertools.product(range(count), range(turns))
    ]


def test_of_long_conversations_only_a_little_is_read_at_once(tmp_path: Path) -> None:
    with sender_of(tmp_path, conversations(50, 20)) as sender:
        read = [0]
        while sender.hungry:
            sender.feed()
            read.append(sender._spool.bytes_read)
        assert sender._dispatcher.ahead == 50
        assert max(b - a for a, b in itertools.pairwise(read)) < 200_000


def test_before_the_start_is_read_what_there_is_time_for(tmp_path: Path) -> None:
    with sender_of(tmp_path, asked(2_000)) as sender:
        sender.feed_up(clock.now_ns() - 1)
        assert sender._dispatcher.ahead == 0
        sender.feed_up(clock.now_ns() + 60_000_000_000)
        assert not sender.hungry
        assert sender._dispatcher.ahead < 500


@pytest.mark.parametrize(("cap", "at_first"), [(None, 512), (16, 512), (2_000, 4_000), (2_000_000_000, 1 << 16)])
def test_of_a_load_without_end_more_is_made_where_the_workers_nearly_run_out(
    tmp_path: Path, cap: int | None, at_first: int
) -> None:
    stripes = Stripes(workers=1, cap=cap, closed=cap is not None, endless=True)
    with SpoolWriter(tmp_path, 1) as spool:
        feeder = _Feeder(spool, endless(), stripes)
        feeder.fill_first()
        assert at_first <= feeder.written < at_first + 100
        for _ in range(20):  # they look, and have not heard anything new
            feeder.go_on(0)
        assert feeder.written < at_first + 100
        made = [reported(feeder, taken=feeder.written) for _ in range(12)]
        assert made == sorted(made)
        assert 30_000 < made[-1] < 70_000
        assert reported(feeder, taken=feeder.written - 50_000) < 20_000  # they do not take so many any more


@pytest.mark.parametrize("cap", [1, 5_000, 2_000_000_000])
def test_of_large_requests_no_more_is_made_than_there_is_room_for(tmp_path: Path, cap: int) -> None:
    with SpoolWriter(tmp_path, 1) as spool:
        large = (msgspec.structs.replace(request, messages=(LARGE,) * 8) for request in endless())
        feeder = _Feeder(spool, large, Stripes(workers=1, cap=cap, closed=True, endless=True))
        feeder.fill_first()
        made = [reported(feeder, taken=feeder.written) for _ in range(4)]
        assert made[-1] * spool.bytes / feeder.written < 80_000_000


def endless() -> Iterator[Request]:
    """Requests like those of a small stage, over and over."""
    (one,) = asked(1)
    return (msgspec.structs.replace(one, id=i, session=i) for i in itertools.count())


def reported(feeder: _Feeder, taken: int) -> int:
    """How many are made after a report."""
    before = feeder.written
    feeder.go_on(taken)
    while feeder.busy:
        feeder.go_on(taken)
    return feeder.written - before


class SlowMaker:
    """Remembers how often it was asked: as where the measured server counts the tokens."""

    def __init__(self) -> None:
        self.made = 0

    def requests(self) -> Iterator[Request]:
        for request in endless():
            clock.sleep_s(0.02)
            self.made += 1
            yield request


@contextmanager
def slowly_fed(folder: Path, cap: int) -> Iterator[tuple[_Feeder, SlowMaker]]:
    """After the first filling of a stream without end."""
    maker = SlowMaker()
    with SpoolWriter(folder, 1) as spool:
        feeder = _Feeder(spool, maker.requests(), Stripes(workers=1, cap=cap, closed=True, endless=True))
        feeder.fill_first()
        yield feeder, maker


@pytest.mark.parametrize("cap", [1, 2, 8])
def test_who_makes_requests_slowly_is_asked_for_few_before_the_start(tmp_path: Path, cap: int) -> None:
    with slowly_fed(tmp_path, cap=cap) as (_, maker):
        assert 16 <= maker.made <= 40


def test_however_slow_the_maker_is_each_user_has_two_requests_at_the_start(tmp_path: Path) -> None:
    with slowly_fed(tmp_path, cap=40) as (_, maker):
        assert 80 <= maker.made <= 90


def test_while_a_stage_runs_a_slow_maker_is_asked_for_no_more_than_was_taken(tmp_path: Path) -> None:
    with slowly_fed(tmp_path, cap=2) as (feeder, maker):
        at_first = maker.made
        assert reported(feeder, taken=at_first // 2) == 0
        made = [reported(feeder, taken=at_first // 2 + n) for n in range(1, 8)]
        assert all(few <= 2 for few in made)
        assert maker.made <= at_first + 8


def test_a_slow_maker_does_not_keep_the_workers_unheard(tmp_path: Path) -> None:
    with slowly_fed(tmp_path, cap=32) as (feeder, maker):
        at_first = maker.made
        feeder.go_on(taken=at_first)
        assert 1 <= maker.made - at_first <= 4
        assert feeder.busy
