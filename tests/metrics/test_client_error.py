"""The bounds hold for a simulated client that stalls; by the kernel's rule a read has the stamp of its last bytes."""

import random
from collections.abc import Iterator
from operator import sub
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from withstand.metrics.context import StageContext
from withstand.metrics.doubts import DoubtKind
from withstand.metrics.latency import unsure_events
from withstand.metrics.quantiles import percentile
from withstand.metrics.sample import Sample
from withstand.metrics.summarize import summarize_stage
from withstand.metrics.summary import StageSummary
from withstand.record import LOOK_NS, Clock, Health, Record, Spread, Status, TokensFrom
from withstand.spec import Inf, Stage

MS = 1_000_000
SEND_NS = 10_000


class World(msgspec.Struct, frozen=True):
    """How the server paces and how the client fares."""

    seed: int
    streams: int
    itl_ms: float
    stall_ms: float
    stall_share: float
    clock: Clock
    looks_told: bool = True
    """Whether the records say when each socket was last empty; older ones do not."""


worlds = st.builds(
    World,
    seed=st.integers(0, 2**32),
    streams=st.integers(1, 40),
    itl_ms=st.sampled_from((0.2, 2.0, 20.0)),
    stall_ms=st.sampled_from((0.5, 8.0, 60.0)),
    stall_share=st.sampled_from((0.0, 0.01, 0.2)),
    clock=st.sampled_from(Clock),
    looks_told=st.booleans(),
)


class Stream:
    """One answer: when its events truly came, and what the client took down."""

    def __init__(self, rng: random.Random, world: World) -> None:
        self.sent_ns = rng.randrange(0, 50 * MS)
        self.handed_ns = self.sent_ns + rng.randrange(0, SEND_NS)
        now_ns = float(self.handed_ns + rng.expovariate(1 / (10 * MS)))
        self.came_ns: list[int] = []
        for _ in range(rng.randint(1, 30)):
            self.came_ns.append(round(now_ns))
            together = rng.random() < 0.1
            now_ns += 0 if together else rng.expovariate(1 / (world.itl_ms * MS))
        self.stamps_ns: list[int] = []
        self.unsure: list[int] = []
        self.unsure_since_ns: list[int] = []

    @property
    def next_ns(self) -> int | None:
        """When there is something to read."""
        return self.came_ns[len(self.stamps_ns)] if len(self.stamps_ns) < len(self.came_ns) else None

    def read(self, looked_ns: int, read_ns: int, clock: Clock) -> None:
        """Take what has come by now, as a worker does."""
        before = len(self.stamps_ns)
        new = [ns for ns in self.came_ns[before:] if ns <= read_ns]
        stamp_ns = new[-1] if clock is Clock.KERNEL else read_ns
        self.stamps_ns += [stamp_ns] * len(new)
        if read_ns - stamp_ns > LOOK_NS or stamp_ns - looked_ns > LOOK_NS:
            self.unsure += range(before, before + len(new) - 1)
            self.unsure_since_ns += [looked_ns] * (len(new) - 1)


def simulate(world: World) -> tuple[list[Stream], list[int]]:
    """The streams, and for how long the bytes of each read may have lain there: a loop that polls and reads in turn."""
    rng = random.Random(world.seed)
    streams = [Stream(rng, world) for _ in range(world.streams)]
    blind: list[int] = []
    now_ns = began_ns = 0
    while left := [stream for stream in streams if stream.next_ns is not None]:
        left_ns, before_ns = now_ns, began_ns
        now_ns = began_ns = max(left_ns, min(stream.next_ns or 0 for stream in left))
        looked_ns = began_ns if began_ns - left_ns > LOOK_NS else before_ns
        for stream in [stream for stream in left if (stream.next_ns or 0) <= began_ns]:
            now_ns += rng.randrange(5_000, 20_000)
            now_ns += round(world.stall_ms * MS) if rng.random() < world.stall_share else 0
            stream.read(looked_ns, now_ns, world.clock)
            blind.append(now_ns - looked_ns)
    return streams, blind


def spread(values: list[int]) -> Spread:
    ordered = sorted(values)
    at = [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.99)]
    return Spread(len(ordered), at[0], at[1], ordered[-1])


def record_of(i: int, stream: Stream, world: World) -> Record:
    assert len(stream.stamps_ns) == len(stream.came_ns)
    return Record(
        id=i,
        stage=0,
        status=Status.OK,
        sent_ns=stream.sent_ns,
        chunk_ns=stream.stamps_ns,
        unsure=stream.unsure,
        unsure_since_ns=stream.unsure_since_ns if world.looks_told else [],
        output_tokens=len(stream.stamps_ns),
        tokens_from=TokensFrom.SERVER,
        clock=world.clock,
    )


def summary_of(records: list[Record], health: Health, **stage: Any) -> StageSummary:
    asked = Stage(**{"name": "s", "arrivals": Inf(), "num_prompts": len(records), **stage})
    return summarize_stage(records, StageContext(stage=asked, health=(health,)))


def health_of(blind: list[int], **facts: Any) -> Health:
    return Health(
        **{
            "worker": 0,
            "sent": 400,
            "finished": 400,
            "wall_ns": 10**10,
            "cpu_ns": 10**9,
            "forced_switches": 0,
            "clock_width_ns": 0,
            "blind": spread(blind) if blind else None,
            **facts,
        }
    )


def truths(streams: list[Stream]) -> Iterator[tuple[str, list[float]]]:
    yield "ttft", [s.came_ns[0] - s.handed_ns for s in streams]
    yield "e2el", [s.came_ns[-1] - s.handed_ns for s in streams]
    yield "itl", [gap for s in streams for gap in map(sub, s.came_ns[1:], s.came_ns)]


@given(worlds)
@settings(max_examples=150, deadline=None)
def test_no_shown_number_is_further_from_the_truth_than_its_bound(world: World) -> None:
    streams, blind = simulate(world)
    records = [record_of(i, stream, world) for i, stream in enumerate(streams)]
    summary = summary_of(records, health_of(blind if world.clock is Clock.USER else []))
    assert summary.client_error is not None
    for name, values in truths(streams):
        shown, off = getattr(summary, name), getattr(summary.client_error, name)
        if not shown.n:
            continue
        true = Sample("d")
        true.extend(values)
        for key, share in (("p50", 0.5), ("p99", 0.99)):
            wrong_ms = abs(shown.percentiles[key] - percentile(true, share) / MS)
            assert wrong_ms <= getattr(off, key) + 1e-6, (name, key)
        if name != "itl" or not summary.unsure_gaps:
            assert abs(shown.mean - true.mean() / MS) <= off.mean + 1e-6, name


@given(worlds)
@settings(max_examples=60, deadline=None)
def test_tpot_is_no_further_from_the_truth_than_its_bound(world: World) -> None:
    """Where every answer that has a TPOT was seen to have one."""
    streams, blind = simulate(world)
    seen = [s for s in streams if len(s.stamps_ns) > 1 and s.stamps_ns[-1] > s.stamps_ns[0]]
    records = [record_of(i, stream, world) for i, stream in enumerate(seen)]
    summary = summary_of(records, health_of(blind if world.clock is Clock.USER else []))
    if not seen or summary.client_error is None:
        return
    true = Sample("d")
    true.extend((s.came_ns[-1] - s.came_ns[0]) / later_tokens(r) for s, r in zip(seen, records, strict=True))
    for key, share in (("p50", 0.5), ("p99", 0.99)):
        shown_ms = summary.tpot.percentiles[key]
        assert shown_ms is not None
        assert abs(shown_ms - percentile(true, share) / MS) <= getattr(summary.client_error.tpot, key) + 1e-6


def later_tokens(record: Record) -> int:
    """Those that did not surely come together with the first."""
    unsure = unsure_events(record)
    together = [i for i, ns in enumerate(record.chunk_ns) if ns == record.chunk_ns[0] and i not in unsure]
    return len(record.chunk_ns) - max(1, len(together))


STALLING = World(seed=7, streams=40, itl_ms=2.0, stall_ms=8.0, stall_share=0.01, clock=Clock.KERNEL)


def test_the_simulated_client_does_look_away() -> None:
    """Else the tests above would hold for nothing."""
    streams, _ = simulate(STALLING)
    summary = summary_of([record_of(i, stream, STALLING) for i, stream in enumerate(streams)], health_of([]))
    assert summary.unsure_gaps > 10
    assert any(stream.stamps_ns != stream.came_ns for stream in streams)
    assert summary.client_error is not None
    assert summary.client_error.itl.p99 > LOOK_NS / MS


def test_a_client_that_left_no_account_has_no_bound_but_what_the_records_tell() -> None:
    streams, _ = simulate(STALLING)
    records = [record_of(i, stream, STALLING) for i, stream in enumerate(streams)]
    for health in (health_of([], forced_switches=None), health_of([], lost=True)):
        error = summary_of(records, health).client_error
        assert error is not None
        assert (error.ttft.p99, error.itl.p99, error.rate_share) == (None, None, None)


def test_one_event_a_read_leaves_nothing_but_the_send() -> None:
    """What a stall cannot touch: each event was read by itself, however late."""
    chunks = [[(50 + 20 * k) * MS for k in range(50)] for _ in range(40)]
    records = [
        Record(id=i, stage=0, status=Status.OK, sent_ns=0, chunk_ns=ns, output_tokens=50, clock=Clock.KERNEL)
        for i, ns in enumerate(chunks)
    ]
    late = health_of([], lag=Spread(2000, 10**6, 30 * 10**6, 10**8), loop_stall_ns_max=10**8, clock_width_ns=200)
    error = summary_of(records, late).client_error
    assert error is not None
    assert error.itl.p99 == pytest.approx(200 / MS)
    assert error.ttft.p99 == pytest.approx((SEND_NS + 200) / MS)


def test_a_last_token_that_lay_beside_the_end_of_the_answer_may_have_come_earlier() -> None:
    """Its stamp is that of the bytes behind it."""
    stamps_ns, facts = [50 * MS, 70 * MS, 95 * MS], {"sent_ns": 0, "output_tokens": 3, "clock": Clock.KERNEL}
    error = summary_of(
        [Record(id=0, stage=0, status=Status.OK, chunk_ns=stamps_ns, unsure=[2], **facts)], health_of([])
    )
    assert error.client_error is not None
    assert error.client_error.e2el.p50 == pytest.approx(25.01)
    assert error.client_error.tpot.p50 == pytest.approx(12.5)
    assert error.client_error.itl.p99 == pytest.approx(0.99 * 5)


def paced(i: int, **looks: Any) -> Record:
    """Its last token shares a read with the end of the answer, which we took late."""
    stamps_ns = [(50 + i % 7 + 10 * k) * MS for k in range(18)]
    facts = {"sent_ns": 0, "output_tokens": 18, "tokens_from": TokensFrom.SERVER, "clock": Clock.KERNEL}
    return Record(id=i, stage=0, status=Status.OK, chunk_ns=stamps_ns, unsure=[17], **facts, **looks)


def test_an_event_did_not_come_while_its_socket_was_empty() -> None:
    """Else a late look at the end of most answers would leave a whole gap open, and block a run that is right."""
    look_ns = 200_000
    told = summary_of([paced(i, unsure_since_ns=[(220 + i % 7) * MS - look_ns]) for i in range(400)], health_of([]))
    untold = summary_of([paced(i) for i in range(400)], health_of([]))
    assert told.client_error is not None
    assert untold.client_error is not None
    assert told.client_error.e2el.p50 == pytest.approx((look_ns + SEND_NS) / MS)
    assert told.client_error.tpot.p50 == pytest.approx(look_ns / MS / 17)
    assert untold.client_error.e2el.p50 > 9
    blocked = [any(d.kind is DoubtKind.CLIENT_BOUND for d in of.doubts) for of in (told, untold)]
    assert blocked == [False, True]


@pytest.mark.parametrize(("forced", "off_ms"), [(0, 0.01), (3_000, 0.01), (10**6, 80.01)])
def test_sends_that_lost_their_core_between_stamp_and_call_are_few(forced: int, off_ms: float) -> None:
    """Of 400 sends, 3,000 switches in a second of work hit one in thirty; a million hit them all."""
    records = [
        Record(id=i, stage=0, status=Status.OK, sent_ns=0, chunk_ns=[50 * MS], output_tokens=1, clock=Clock.KERNEL)
        for i in range(400)
    ]
    error = summary_of(records, health_of([], forced_switches=forced, loop_stall_ns_max=80 * MS)).client_error
    assert error is not None
    assert error.ttft.p50 == pytest.approx(off_ms)
