from typing import Any

import msgspec

from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.summary import Summary
from withstand.report.standing import Level, gathered, heard, standing


def doubt(kind: DoubtKind, sentence: str = "It may be.", *, blocking: bool = False) -> Doubt:
    return Doubt(kind, sentence, "Look.", blocking)


def doubting(sample: Any, *doubts_by_stage: tuple[Doubt, ...]) -> Summary:
    stages = zip(sample.summary.stages, doubts_by_stage, strict=False)
    return msgspec.structs.replace(
        sample.summary, stages=tuple(msgspec.structs.replace(stage, doubts=doubts) for stage, doubts in stages)
    )


def test_blocking_doubts_are_heard_first_then_ours_then_the_setting(sample: Any) -> None:
    few, busy, failed = DoubtKind.TOO_FEW_SAMPLES, DoubtKind.CLIENT_BOUND, DoubtKind.REQUESTS_FAILED
    summary = doubting(sample, (doubt(few), doubt(busy)), (doubt(failed, blocking=True),))
    assert [d.kind for d in heard(summary)] == [failed, busy, few]


def test_the_same_doubt_is_heard_once_with_its_stages(sample: Any) -> None:
    few = DoubtKind.TOO_FEW_SAMPLES
    summary = doubting(sample, (doubt(few, "20."),), (doubt(few, "40."),), (doubt(few, "20."),))
    (once,) = heard(summary)
    assert once.sentence == "20."
    assert [case.stages for case in once.cases] == [("prompt-32", "prompt-128"), ("prompt-64",)]
    assert once.where == "in prompt-32, prompt-128 · alike in prompt-64"


def test_a_place_that_raises_a_doubt_twice_is_named_once(sample: Any) -> None:
    """Repeats of a run share their name."""
    few = DoubtKind.TOO_FEW_SAMPLES
    (once,) = gathered(
        [(doubt(few, said), place) for said, place in (("1.", "a"), ("2.", "a"), ("3.", "b"), ("4.", "b"))]
    )
    assert once.where == "in a · alike in b"


def test_the_figures_of_the_others_stand_behind_their_names() -> None:
    rates = [
        (f"rate-{rate}", Doubt(DoubtKind.RATE_NOT_ACHIEVED, f"{rate}!", "Look.", brief=f"27 of {rate}"))
        for rate in (30, 35)
    ]
    (once,) = gathered((doubt, name) for name, doubt in rates)
    assert once.where == "in rate-30 · alike in rate-35: 27 of 35"


def test_of_a_side_of_several_runs_each_figure_has_its_side() -> None:
    """``alike in one, four: 2 of 180; one: 3 of 90; four: 4 of 90`` told nobody whose they were."""
    said = [("one", "2 of 105"), ("one", "2 of 180"), ("four", "2 of 180"), ("one", "3 of 90"), ("four", "4 of 90")]
    (once,) = gathered(
        (Doubt(DoubtKind.RATE_NOT_ACHIEVED, f"{brief}!", "Look.", brief=brief), side) for side, brief in said
    )
    assert once.where == "in one · alike in other runs of one: 2 of 180, 3 of 90; runs of four: 2 of 180, 4 of 90"


def test_of_very_many_places_the_first_are_named() -> None:
    (once,) = gathered((doubt(DoubtKind.TOO_FEW_SAMPLES, f"{n}."), f"stage-{n}") for n in range(40))
    assert once.where.endswith("and 33 more")
    assert len(once.where) < 200


def test_one_remedy_of_several_doubts_in_a_row_is_said_once(single: Any) -> None:
    kinds = (DoubtKind.CLIENT_BOUND, DoubtKind.SENDS_LATE, DoubtKind.CLOCK_LAGGED)
    said = heard(doubting(single, tuple(doubt(kind) for kind in kinds)))
    assert [d.brief_remedy for d in said] == ["Look.", "As above.", "As above."]
    assert [d.remedy for d in said] == ["Look."] * 3, "a card has no other right above it"


def test_a_doubt_about_the_run_has_no_stage(single: Any) -> None:
    summary = msgspec.structs.replace(doubting(single, ()), doubts=(doubt(DoubtKind.WARMUP_MISSING),))
    assert heard(summary)[0].where == ""


def test_the_verdict_follows_the_doubts(single: Any) -> None:
    late = DoubtKind.SENDS_LATE
    verdicts = [
        standing(doubting(single, doubts)) for doubts in ((), (doubt(late),), (doubt(late), doubt(late, blocking=True)))
    ]
    assert [v.level for v in verdicts] == [Level.STANDS, Level.DOUBTED, Level.FALLEN]
    assert verdicts[2].sentence == "The numbers do not stand: a doubt forbids the headline."


def test_a_run_that_was_cut_says_so_first(single: Any) -> None:
    verdict = standing(msgspec.structs.replace(doubting(single, ()), complete=False))
    assert verdict.level is Level.FALLEN
    assert verdict.sentence.startswith("Partial:")


def test_nothing_measured_is_no_good_run() -> None:
    assert standing(Summary(stages=())).sentence == "Nothing was measured."
