"""What a diagnosis takes away from numbers that are measured over the same path: doubts of the kinds that runs have."""

from collections.abc import Iterator, Mapping
from typing import Final

from withstand.doctor.finding import Diagnosis, Finding
from withstand.doctor.shape import Kind
from withstand.doctor.streaming import SHAPE
from withstand.metrics.doubts import Doubt, DoubtKind

_OF_CHECKS: Final[Mapping[str, DoubtKind]] = {
    "usage.stream": DoubtKind.TOKENS_ESTIMATED,
    "usage.fits": DoubtKind.CLAIMED_NOT_COUNTED,
    "fields.max_completion_tokens": DoubtKind.LENGTHS_DIFFER,
    "fields.max_tokens": DoubtKind.LENGTHS_DIFFER,
    "fields.kept": DoubtKind.LENGTHS_DIFFER,
}
_IN_BURSTS: Final = frozenset({Kind.BY_SIZE, Kind.BY_TIME})


def doubts_of(diagnosis: Diagnosis) -> Iterator[Doubt]:
    """One for each wrong finding that bears on a number."""
    for finding in diagnosis.bad:
        if kind := _kind(finding):
            sentence = f"By `--doctor`, over this path ({finding.title.lower()}): {finding.said}."
            yield Doubt(kind=kind, sentence=sentence, remedy=finding.cure)


def _kind(finding: Finding) -> DoubtKind | None:
    if finding.check == SHAPE.check:
        return DoubtKind.HOP_BUFFERS if finding.facts.get("kind") in _IN_BURSTS else DoubtKind.NOT_STREAMED
    return _OF_CHECKS.get(finding.check)
