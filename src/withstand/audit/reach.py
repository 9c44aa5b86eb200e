"""Which claims a doubt takes away: one table, from the kind of a doubt to what falls with it and what nobody can know.

A doubt that is in no line of it is to be read beside the numbers and takes nothing away by itself; a blocking one that
is in no line takes everything.
"""

from collections.abc import Mapping

import msgspec

from withstand.audit.shape import Claim, Subject
from withstand.metrics.doubts import Doubt, DoubtKind

_Claims = frozenset[Claim]
_NONE: _Claims = frozenset()
EVERYTHING: _Claims = frozenset(Claim)
TIMES: _Claims = frozenset({Claim.TTFT, Claim.TTFT_P99, Claim.TPOT, Claim.ITL, Claim.E2EL})
_RATES: _Claims = frozenset({Claim.REQUESTS, Claim.TOKENS})
_FIRST: _Claims = frozenset({Claim.TTFT, Claim.TTFT_P99})
_QUEUE: _Claims = _FIRST | {Claim.E2EL}
_PER_TOKEN: _Claims = frozenset({Claim.TPOT, Claim.TOKENS})
_INSTANT_TPOT_MS = 1.0
_SURVIVORS: _Claims = EVERYTHING - {Claim.SUCCESS}


OF_ALL_RUNS = frozenset({DoubtKind.NOT_STREAMED, DoubtKind.FLAT_THROUGHPUT})
"""Raised by several runs together, these hold for each of them."""


class Reach(msgspec.Struct, frozen=True):
    """What one doubt does: ``falls`` in any case, ``blocked`` where it is a blocking one, ``unknown`` else."""

    falls: _Claims = _NONE
    blocked: _Claims = _NONE
    unknown: _Claims = _NONE


_TABLE: Mapping[DoubtKind, Reach] = {
    DoubtKind.WORKER_LOST: Reach(falls=EVERYTHING),
    DoubtKind.CLIENT_BOUND: Reach(falls=TIMES),
    DoubtKind.SENDS_LATE: Reach(blocked=_RATES),
    DoubtKind.CLOCK_LAGGED: Reach(unknown=frozenset({Claim.TTFT_P99, Claim.ITL})),
    DoubtKind.REQUESTS_FAILED: Reach(blocked=_SURVIVORS, unknown=frozenset({Claim.TTFT_P99})),
    DoubtKind.FEWER_THAN_ASKED: Reach(blocked=_SURVIVORS, unknown=frozenset({Claim.TTFT_P99})),
    DoubtKind.RATE_LIMITED: Reach(falls=frozenset({Claim.SUCCESS}), blocked=EVERYTHING),
    DoubtKind.LIKE_A_LIMITER: Reach(falls=frozenset({Claim.SUCCESS})),
    DoubtKind.ERROR_TEXT: Reach(falls=EVERYTHING),
    DoubtKind.STOPPED_EARLY: Reach(unknown=_RATES),
    DoubtKind.RATE_NOT_ACHIEVED: Reach(falls=_QUEUE),
    DoubtKind.LATENCY_GROWS: Reach(falls=_QUEUE),
    DoubtKind.QUEUE_OF_A_BURST: Reach(falls=_QUEUE),
    DoubtKind.FLAT_THROUGHPUT: Reach(falls=_FIRST),
    DoubtKind.TOO_SHORT_TO_TELL: Reach(unknown=_RATES),
    DoubtKind.NOT_STREAMED: Reach(falls=_FIRST | {Claim.TPOT, Claim.ITL}),
    DoubtKind.HOP_BUFFERS: Reach(falls=frozenset({Claim.ITL})),
    DoubtKind.SHARED_READS: Reach(unknown=frozenset({Claim.ITL})),
    DoubtKind.CLAIMED_NOT_COUNTED: Reach(blocked=_PER_TOKEN, unknown=_PER_TOKEN),
    DoubtKind.TOKENS_ESTIMATED: Reach(unknown=_PER_TOKEN),
    DoubtKind.TOO_FEW_SAMPLES: Reach(unknown=frozenset({Claim.TTFT_P99})),
    DoubtKind.IMPOSSIBLE: Reach(falls=EVERYTHING),
    DoubtKind.SUMS_DISAGREE: Reach(falls=_RATES),
    DoubtKind.CONCURRENCY_DISAGREES: Reach(falls=frozenset({Claim.E2EL})),
    DoubtKind.PARTS_AGAINST_WHOLE: Reach(unknown=frozenset({Claim.TPOT})),
    DoubtKind.SPEED_NO_THROUGHPUT: Reach(falls=frozenset({Claim.TOKENS})),
}


def falls(doubt: Doubt, subject: Subject) -> _Claims:
    """The claims of a subject that do not stand with this doubt."""
    if doubt.kind is DoubtKind.RATE_NOT_ACHIEVED and subject.capped:
        return _NONE
    if doubt.kind is DoubtKind.HOP_BUFFERS and _all_at_once(subject):
        return _FIRST | {Claim.TPOT, Claim.ITL}
    reach = _TABLE.get(doubt.kind)
    if reach is None:
        return EVERYTHING if doubt.blocking else _NONE
    return reach.falls | (reach.blocked if doubt.blocking else _NONE)


def _all_at_once(subject: Subject) -> bool:
    """No engine takes so little for a token: what is held back is the whole answer, not parts of it."""
    tpot = subject.values.get(Claim.TPOT)
    return tpot is not None and tpot.value < _INSTANT_TPOT_MS


def unknown(doubt: Doubt) -> _Claims:
    """The claims that nobody can know with this doubt."""
    reach = _TABLE.get(doubt.kind)
    return reach.unknown if reach else _NONE
