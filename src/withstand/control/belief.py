"""Is it the server that a probe has found, or ourselves? By what our own error could have changed (decision 005).

Or another stack than the one that is described: while a service of it was away.

A load that breaks a promise is believed if it would break it were its limit longer by all that we may have added; one
that holds, if it would hold were the limit shorter by what we may have taken away. Else the load is open, with a doubt.
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from withstand.control.certainty import all_kept, first_broken
from withstand.control.probe import Look, Probe, Standing
from withstand.metrics.bounds import LIMITS, bounds_of
from withstand.metrics.doubts import DoubtKind
from withstand.metrics.rounding import percent
from withstand.metrics.rules.client import RATE_SHARE
from withstand.metrics.summary import ClientError, Off, StageSummary
from withstand.record import Record
from withstand.spec import Promise
from withstand.spec.promise import spoken

_NOTHING_MS, _NOTHING_SHARE = 0.1, 0.01
"""What our times are meant to be true to: no limit is shifted by less."""
_OUR_LIMIT = "This client's limit"
"""How the error text of a request begins that we could not send."""
_MEDIAN = 0.5
_EITHER_WAY = frozenset({"tpot", "itl"})
"""A time between two stamps may be too short through us as well; one that begins with a send cannot."""


class Evidence(msgspec.Struct, frozen=True):
    """A stage whose load was tried."""

    records: Iterable[Record]
    """Read only where they matter."""
    summary: StageSummary
    promises: tuple[Promise, ...]


def believed(look: Look, evidence: Evidence) -> Look:
    """The look, or an open one that says why."""
    if look.standing is Standing.OPEN:
        return look
    why = (
        _another_stack(look, evidence.summary)
        or _less_load(look, evidence.summary)
        or _too_slow(look, evidence.summary)
        or _moved(look, evidence)
    )
    return replace(look, standing=Standing.OPEN, promise=None, doubt=why) if why else look


def _another_stack(look: Look, stage: StageSummary) -> str | None:
    """What breaks without one of its services need not break with it; what holds without, holds with it."""
    lost = next((doubt for doubt in stage.doubts if doubt.kind is DoubtKind.SERVICE_LOST), None)
    return None if lost is None or look.standing is Standing.HOLDS else f"it was without {lost.brief}"


def _less_load(look: Look, stage: StageSummary) -> str | None:
    """What breaks at less load than was asked, breaks at that as well; of what holds, it says nothing."""
    if look.standing is Standing.BREAKS:
        return None
    unsent = sum(count for text, count in stage.errors.items() if text.startswith(_OUR_LIMIT))
    missing = max(unsent / stage.attempted if stage.attempted else 0.0, _rate_share(stage))
    return f"our own client sent {percent(missing)} less than was asked" if missing > RATE_SHARE else None


def _rate_share(stage: StageSummary) -> float:
    return (stage.client_error.rate_share if stage.client_error else None) or 0.0


def _too_slow(look: Look, stage: StageSummary) -> str | None:
    """A queue grows in front of a client that does not get round to reading, too."""
    slow = any(bound.matters(LIMITS[bound.key]) for bound in bounds_of(stage, "e2el"))
    return "our own client was too slow to tell whose queue it is" if look.standing is Standing.GROWS and slow else None


def _moved(look: Look, evidence: Evidence) -> str | None:
    """Whether a shifted limit would change what was found."""
    shifted = tuple(_shifted(promise, look, evidence.summary) for promise in evidence.promises)
    moved = [(a, b) for a, b in zip(evidence.promises, shifted, strict=True) if a != b]
    if not moved or look.standing is Standing.GROWS:
        return None
    shares = _again(look, evidence.records, shifted).shares
    holds = look.standing is Standing.HOLDS
    stays = all_kept(shares, shifted) if holds else first_broken(shares, shifted) is not None
    if stays:
        return None
    told = ", ".join(f"{spoken(a.metric)} by up to {abs((b.limit or 0) - (a.limit or 0)):.3g} ms" for a, b in moved)
    return f"our own client's error could have made it ({told})"


def _shifted(promise: Promise, look: Look, stage: StageSummary) -> Promise:
    if promise.limit is None or stage.client_error is None:
        return promise
    off_ms = _off_ms(promise, stage.client_error)
    if off_ms <= max(_NOTHING_MS, _NOTHING_SHARE * promise.limit):
        return promise
    if look.standing is Standing.BREAKS:
        return replace(promise, limit=promise.limit + off_ms)
    least = max(promise.limit - off_ms, _NOTHING_MS)
    return replace(promise, limit=least) if promise.metric in _EITHER_WAY else promise


def _off_ms(promise: Promise, error: ClientError) -> float:
    """By how much its percentile may be wrong; a response time holds our lateness, and what reading adds."""
    names = ("response", "e2el") if promise.metric == "response" else (promise.metric,)
    return sum(_most(getattr(error, name), promise.share) for name in names)


def _most(off: Off, share: float) -> float:
    """Between two percentiles whose bound is known, it is the larger."""
    return max(off.p50 or 0.0, off.p99 or 0.0 if share > _MEDIAN else 0.0)


def _again(look: Look, records: Iterable[Record], promises: Sequence[Promise]) -> Look:
    """The look at the requests that it saw, with other limits."""
    probe = Probe(promises)
    probe.feed(sorted(records, key=lambda record: record.id), most=look.requests)
    return probe.last_look()
