"""What a board cannot show, in sentences: services that were away, targets not heard, values beyond belief."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from withstand.errors import EngineError
from withstand.metrics.rounding import percent
from withstand.record import Outage
from withstand.report.numbers import seconds
from withstand.runs import RunFolder
from withstand.stack.monitoring import LIMITS
from withstand.stack.prometheus import Range, last_errors, over_time
from withstand.stack.queries import HEARD
from withstand.wire.reply import one_line

_MISSED_SHARE = 0.05
"""On a busy machine single pages come late."""
_ERRORS: Mapping[str, str] = {
    "sample limit exceeded": f"its page has more than {LIMITS['sample_limit']:,} series",
    "body size limit exceeded": f"its page has more than {LIMITS['body_size_limit']}",
    "context deadline exceeded": "its page does not come within the time between two looks",
    "connection refused": "nobody answers there",
}


def away(runs: Sequence[RunFolder], since_s: float) -> Iterator[str]:
    """Services, by what the runs have noted; an outage that several runs saw is told once."""
    told: dict[tuple[str, int], str] = {}
    for run in runs:
        began_s = run.manifest.anchor.wall_ns / 1e9 - since_s
        for one in run.manifest.outages:
            told[one.service, round(began_s + one.began_ns / 1e9)] = _away(one, began_s)
    yield from told.values()


def _away(one: Outage, began_s: float) -> str:
    to = f"to {seconds(began_s + one.back_ns / 1e9)}" if one.back_ns is not None else "on"
    return f"{one.service} was away from {seconds(max(0.0, began_s + one.began_ns / 1e9))} {to}: it {one.reason}"


def unheard(prometheus: str, when: Range) -> Iterator[str]:
    """Targets whose pages were not taken, and why.

    Raises:
        EngineError: Prometheus does not answer.
    """
    errors: dict[str, str] = {}
    with suppress(EngineError):  # what it has seen it has told; why it has not seen the rest is a courtesy
        errors = last_errors(prometheus)
    for series in over_time(prometheus, HEARD, when):
        found = list(series.at().values())
        service = series.metric.get("service", "?")
        missing = found.count(0.0) / len(found) if found else 0.0
        if missing >= _MISSED_SHARE or (missing and service in errors):
            why = f": {_why(errors[service])}" if service in errors else ""
            yield f"The metrics of {service} were not taken {percent(missing)} of the time{why}."


def _why(error: str) -> str:
    return next((said for words, said in _ERRORS.items() if words in error), one_line(error))


def odd(names: Sequence[str]) -> Iterator[str]:
    """Lines with values that nothing can have."""
    for name in dict.fromkeys(names):
        yield f"{name}: values beyond 1e100 are left out."
