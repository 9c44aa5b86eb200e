"""A fold of parts, each made elsewhere, is that of the whole."""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from withstand.metrics import pieces, sample
from withstand.metrics.context import StageContext
from withstand.metrics.fold import Besides, StageFold, fold_of
from withstand.metrics.sample import Keep
from withstand.metrics.series import fold_series
from withstand.metrics.summarize import stage_summary
from withstand.record import Clock, Record, Status, TokensFrom
from withstand.runs import Shelf
from withstand.spec import Constant, Slo, Stage

MS = 1_000_000
CONTEXT = StageContext(stage=Stage(arrivals=Constant(rate=10.0), num_prompts=40), goodput=Slo(ttft=50))
ALL = Besides(charts=True, courses=True)
MAYBE = st.none() | st.integers(0, 40)


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    def one(number: int) -> Record:
        sent_ns = number * 100 * MS + draw(st.integers(0, 5)) * MS
        gaps = draw(st.lists(st.sampled_from((0, 3, 10 * MS, 25 * MS, 5_000 * MS)), max_size=12))
        chunk_ns = [sent_ns + 40 * MS + sum(gaps[: i + 1]) for i in range(len(gaps))]
        told = draw(st.booleans())
        return Record(
            id=number,
            stage=0,
            status=draw(st.sampled_from((Status.OK, Status.OK, Status.OK, Status.RESET))),
            scheduled_ns=draw(st.none() | st.just(sent_ns - MS)),
            ready_ns=sent_ns - MS,
            started_ns=sent_ns,
            sent_ns=sent_ns,
            chunk_ns=chunk_ns,
            unsure=[0] if chunk_ns and draw(st.booleans()) else [],
            chunk_tokens=draw(st.lists(st.integers(0, 4), min_size=len(gaps), max_size=len(gaps))) if told else None,
            end_ns=chunk_ns[-1] if chunk_ns else sent_ns,
            prompt_tokens=draw(MAYBE),
            output_tokens=draw(MAYBE),
            text_tokens=draw(MAYBE),
            requested_output_tokens=draw(MAYBE),
            tokens_from=draw(st.sampled_from((None, *TokensFrom))),
            finish_reason=draw(st.sampled_from((None, "stop", "length"))),
            error=draw(st.sampled_from((None, "reset", "broken pipe"))),
            clock=draw(st.sampled_from(Clock)),
            text_head=draw(st.sampled_from((None, "Error 500", "Hello"))),
        )

    return [one(number) for number in range(draw(st.integers(0, 40)))]


def shown(fold: StageFold) -> Any:
    return msgspec.to_builtins((stage_summary(fold, CONTEXT), fold_series(fold, CONTEXT), courses_of(fold)))


def courses_of(fold: StageFold) -> Any:
    """In an order that does not know who came first among equals."""
    courses = fold.courses
    assert courses is not None
    above = courses.gaps_above({"few": 20.0, "many": 1e-5})
    answers = [[*place] for place in zip(courses.gap_sums_ms, courses.gap_counts, *above.values(), strict=True)]
    return [sorted(answers), {name: sorted(times) for name, times in courses.series(courses.order()).items()}]


def assert_same(left: Any, right: Any) -> None:
    """Sums of floats may differ in their last digits by the order of adding."""
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        left, right = list(left.values()), [right[key] for key in left]
    if isinstance(left, list | tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    else:
        assert left == (pytest.approx(right, rel=1e-9, abs=1e-9) if isinstance(left, float) else right)


def part_fold(part: Sequence[Record], keep: Keep | None) -> StageFold:
    """As it arrives from another process."""
    fold = StageFold(CONTEXT.goodput, keep, ALL)
    for record in part:
        fold.add(record)
    arrived: StageFold = pickle.loads(pickle.dumps(fold))
    return arrived


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(facts=records(), readers=st.integers(1, 4), run_length=st.integers(1, 20))
def test_folds_of_parts_are_merged_into_that_of_the_whole(
    tmp_path: Path, facts: list[Record], readers: int, run_length: int
) -> None:
    whole = shown(fold_of(facts, CONTEXT.goodput, ALL))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "_RUN_LENGTH", run_length)
        patch.setattr(pieces, "_RUN_LENGTH", run_length)
        patch.setattr(sample, "_FEW", 3)
        merged = StageFold(CONTEXT.goodput, besides=ALL)
        for index in range(readers):
            merged.merge(part_fold(facts[index::readers], Shelf(tmp_path, str(index)).keep))
        assert_same(shown(merged), whole)


def test_what_is_unknown_of_one_part_is_unknown_of_the_whole(answer: Any) -> None:
    known, unknown = fold_of([answer(0)], Slo()), fold_of([answer(1, output_tokens=None)], Slo())
    known.merge(unknown)
    assert stage_summary(known, CONTEXT).total_output_tokens is None
    assert stage_summary(known, CONTEXT).total_input_tokens == 64
