"""The judgement: which claims a doubt takes, what a run and a file are worth, and what one sentence says of it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.audit.judge import judge, judge_all, judge_file, unreadable
from withstand.audit.shape import Case, Claim, Standing, Subject, Value
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.reach import Circumstances


def doubt(kind: DoubtKind, *, blocking: bool = False) -> Doubt:
    return Doubt(kind, f"{kind} is the case.", "Do something.", blocking=blocking)


def subject(*doubts: Doubt, n: int | None = 1000, name: str = "a", **known: Any) -> Subject:
    units = dict.fromkeys(Claim, "ms") | {Claim.REQUESTS: "req/s", Claim.TOKENS: "tok/s", Claim.SUCCESS: "%"}
    values = {claim: Value(10.0, "", unit) for claim, unit in units.items()}
    return Subject(name=name, n=n, circumstances=Circumstances(**known), values=values, doubts=doubts)


def standings(case: Case) -> dict[Claim, Standing]:
    return {finding.claim: finding.standing for finding in case.findings}


def of(standing: Standing, case: Case) -> set[Claim]:
    return {claim for claim, found in standings(case).items() if found is standing}


def test_without_a_doubt_everything_stands() -> None:
    case = judge(subject())
    assert case.standing is Standing.STANDS
    assert of(Standing.STANDS, case) == set(Claim)


def test_our_own_error_leaves_the_statistic_that_it_cannot_have_moved() -> None:
    bound = subject(
        doubt(DoubtKind.CLIENT_BOUND, blocking=True), unmoved=frozenset({"ttft.p50", "ttft.p99", "itl.mean"})
    )
    quoted = {claim: Value(10.0, "p50", "ms") for claim in (Claim.TTFT, Claim.TPOT, Claim.ITL, Claim.E2EL)}
    case = judge(msgspec.structs.replace(bound, values=bound.values | quoted))
    assert case.standing is Standing.FALLS
    assert of(Standing.FALLS, case) == {Claim.TPOT, Claim.ITL, Claim.E2EL}


def test_missing_requests_take_every_number_of_the_survivors_and_leave_the_share_that_succeeded() -> None:
    case = judge(subject(doubt(DoubtKind.FEWER_THAN_ASKED, blocking=True)))
    assert case.standing is Standing.FALLS
    assert of(Standing.STANDS, case) == {Claim.SUCCESS}


def test_a_few_missing_ones_are_the_tail_s() -> None:
    case = judge(subject(doubt(DoubtKind.FEWER_THAN_ASKED)))
    assert case.standing is Standing.STANDS
    assert of(Standing.UNKNOWN, case) == {Claim.TTFT_P99}


@pytest.mark.parametrize(("missing", "known"), [(0.009, True), (0.01, False), (0.09, False), (None, False)])
def test_so_few_that_a_p99_does_not_notice_leave_it(missing: float | None, known: bool) -> None:
    case = judge(subject(doubt(DoubtKind.REQUESTS_FAILED), missing_share=missing))
    assert (standings(case)[Claim.TTFT_P99] is Standing.STANDS) == known
    assert standings(case)[Claim.TTFT] is Standing.STANDS


def test_past_saturation_the_throughput_stands_and_the_waiting_time_does_not() -> None:
    case = judge(subject(doubt(DoubtKind.RATE_NOT_ACHIEVED)))
    assert case.standing is Standing.PARTLY
    assert of(Standing.FALLS, case) == {Claim.TTFT, Claim.TTFT_P99, Claim.E2EL}


def test_a_cap_keeps_the_queue_out_of_the_times() -> None:
    assert judge(subject(doubt(DoubtKind.RATE_NOT_ACHIEVED), capped=True)).standing is Standing.STANDS


def test_tokens_that_were_claimed_and_not_counted_leave_the_times_of_arrivals() -> None:
    case = judge(subject(doubt(DoubtKind.CLAIMED_NOT_COUNTED, blocking=True)))
    assert case.standing is Standing.FALLS
    assert of(Standing.FALLS, case) == {Claim.TPOT, Claim.TOKENS}


@pytest.mark.parametrize(("tpot_ms", "fallen"), [(0.02, {Claim.TTFT, Claim.TTFT_P99, Claim.TPOT}), (12.0, set())])
def test_a_hop_that_holds_all_of_an_answer_takes_more_than_one_that_holds_parts(
    tpot_ms: float, fallen: set[Claim]
) -> None:
    assert of(Standing.FALLS, judge(subject(doubt(DoubtKind.HOP_BUFFERS), tpot_ms=tpot_ms))) == fallen | {Claim.ITL}


def test_a_speed_in_the_place_of_a_throughput_is_a_headline_that_falls() -> None:
    assert judge(subject(doubt(DoubtKind.SPEED_NO_THROUGHPUT))).standing is Standing.FALLS


@pytest.mark.parametrize(("n", "known"), [(5, False), (6, True)])
def test_a_handful_of_answers_has_no_median_and_no_rate(n: int, known: bool) -> None:
    case = judge(subject(n=n))
    for claim in (Claim.TTFT, Claim.REQUESTS, Claim.TOKENS):
        assert (standings(case)[claim] is Standing.STANDS) == known
    assert standings(case)[Claim.SUCCESS] is Standing.STANDS
    assert (case.standing is Standing.STANDS) == known


def test_a_run_of_which_one_lead_cannot_be_known_stands_in_part_and_so_does_its_file() -> None:
    estimated = doubt(DoubtKind.TOKENS_ESTIMATED)
    assert judge(subject(estimated)).standing is Standing.PARTLY
    audit = judge_file("f", "vLLM JSON", [subject(estimated, name="few"), subject(name="many")], ())
    assert audit.standing is Standing.PARTLY
    assert audit.headline == "1 of 2 runs stands in part (few)."


def test_a_p99_of_nobody_knows_how_many() -> None:
    assert of(Standing.UNKNOWN, judge(subject(n=None))) == {Claim.TTFT_P99}


def test_a_blocking_doubt_without_a_line_takes_everything() -> None:
    assert of(Standing.FALLS, judge(subject(doubt(DoubtKind.WARMUP_MISSING, blocking=True)))) == set(Claim)


def test_a_file_falls_with_one_run_and_names_it() -> None:
    sick = subject(doubt(DoubtKind.REQUESTS_FAILED, blocking=True), name="rate-inf")
    file = judge_file("f", "form", [subject(), subject(name="b"), sick], ())
    assert file.standing is Standing.FALLS
    assert file.headline == "1 of 3 runs does not stand (rate-inf)."
    folder = judge_file("f", "withstand", [subject(), subject(name="b"), sick], (), noun="stages")
    assert folder.headline == "1 of 3 stages does not stand (rate-inf)."


def test_a_file_falls_with_what_only_all_of_its_runs_show() -> None:
    file = judge_file("f", "form", [subject(), subject()], (doubt(DoubtKind.LENGTHS_DIFFER, blocking=True),))
    assert file.standing is Standing.FALLS
    assert [case.standing for case in file.cases] == [Standing.STANDS, Standing.STANDS]
    assert "together does not hold" in file.headline


def test_what_a_series_shows_alike_is_true_of_each_of_its_runs() -> None:
    played = (doubt(DoubtKind.NOT_STREAMED, blocking=True), doubt(DoubtKind.CLIENT_LIMIT, blocking=True))
    case = judge(msgspec.structs.replace(subject(), joint=played))
    assert of(Standing.FALLS, case) == {Claim.TTFT, Claim.TTFT_P99, Claim.TPOT, Claim.ITL}


def test_one_run_is_told_claim_by_claim() -> None:
    file = judge_file("f", "form", [subject(doubt(DoubtKind.RATE_NOT_ACHIEVED))], ())
    assert file.headline == ("TTFT, TTFT p99, E2EL do not stand; TPOT, ITL, req/s, tok/s, success can be quoted.")


def test_of_a_run_that_nobody_can_judge_nothing_is_claimed() -> None:
    few = subject(doubt(DoubtKind.TOO_SHORT_TO_TELL), n=3)
    assert judge_file("f", "form", [few], ()).standing is Standing.UNKNOWN


def test_a_file_that_cannot_be_read_does_not_hide_one_that_falls() -> None:
    sick = judge_file("f", "form", [subject(doubt(DoubtKind.IMPOSSIBLE, blocking=True))], ())
    assert judge_all([unreadable("g", "it is a picture."), sick], ()).standing is Standing.FALLS
    assert judge_all([unreadable("g", "it is a picture.")], ()).standing is Standing.UNKNOWN


def test_what_files_show_together_takes_no_file_s_own_numbers() -> None:
    good = judge_file("f", "form", [subject()], ())
    assert judge_all([good, good], (doubt(DoubtKind.LENGTHS_DIFFER, blocking=True),)).standing is Standing.STANDS


@given(st.lists(st.builds(doubt, st.sampled_from(DoubtKind), blocking=st.booleans()), max_size=6), st.booleans())
def test_a_run_with_a_blocking_doubt_never_stands_and_a_doubt_never_helps(doubts: list[Doubt], capped: bool) -> None:
    case, clean = judge(subject(*doubts, capped=capped)), judge(subject(capped=capped))
    if any(doubt.blocking for doubt in doubts):
        assert case.standing is Standing.FALLS
    assert of(Standing.STANDS, case) <= of(Standing.STANDS, clean)
