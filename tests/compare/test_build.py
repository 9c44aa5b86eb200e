import pytest
from msgspec.structs import replace

from compared import queue, records_of, run_of, side_of
from withstand.compare.build import Options, compare
from withstand.compare.decision import decide
from withstand.compare.gate import gated
from withstand.compare.run import ComparedRun
from withstand.compare.shape import Comparison, Method, Row, Verdict
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.summary import ClientError, Off


def _latencies(name: str, factor: float = 1.0, n: int = 1500) -> list[float]:
    return [20 * factor * value for value in queue(n, 0.3, name, schedule="one")]


def _two(factor: float, *, facts: bool = True) -> Comparison:
    runs = [run_of(records_of(_latencies(name, by)), facts=facts) for name, by in (("a", 1.0), ("b", factor))]
    return compare([side_of("A", runs[0]), side_of("B", runs[1])])


def _row(comparison: Comparison, metric: str) -> Row:
    return next(row for row in comparison.groups[0].rows if row.metric == metric)


def test_a_slower_server_is_worse_with_an_interval_around_the_truth() -> None:
    comparison = _two(1.5)
    row = _row(comparison, "ttft.mean")
    difference = row.differences[1]
    assert difference is not None
    assert difference.verdict is Verdict.WORSE
    assert difference.interval is not None
    assert difference.interval.low is not None
    assert difference.interval.high is not None
    assert difference.interval.low < 50 < difference.interval.high
    assert difference.method is Method.BLOCKS
    assert row.fastest == 0
    assert row.faster_by_percent == pytest.approx(100 / 3, rel=0.2)
    assert comparison.headline.startswith("B is worse than A")


def test_the_same_server_is_not_told_apart() -> None:
    comparison = _two(1.0)
    verdicts = {d.verdict for row in comparison.groups[0].rows for d in row.differences if d}
    assert verdicts <= {Verdict.NO_DIFFERENCE, Verdict.UNKNOWN}
    assert comparison.headline.startswith("No difference is shown")


def test_identical_runs_have_no_difference() -> None:
    run = run_of(records_of(_latencies("a")))
    comparison = compare([side_of("A", run), side_of("B", run)])
    row = _row(comparison, "ttft.mean")
    assert row.fastest is None
    assert row.differences[1] is not None
    assert row.differences[1].verdict is Verdict.NO_DIFFERENCE


def test_aggregates_have_no_verdict_however_large_the_difference() -> None:
    comparison = _two(3.0, facts=False)
    verdicts = {d.verdict for row in comparison.groups[0].rows for d in row.differences if d}
    assert verdicts == {Verdict.UNKNOWN}
    assert comparison.headline.startswith("Nothing can be concluded")
    row = _row(comparison, "ttft.mean")
    assert row.remark is not None
    assert "aggregates only" in row.remark.casefold()


def test_repeated_aggregates_have_one() -> None:
    sides = [
        side_of(name, *(run_of(records_of(_latencies(f"{name}{i}", by)), facts=False) for i in range(4)))
        for name, by in (("A", 1.0), ("B", 2.0))
    ]
    difference = _row(compare(sides), "ttft.mean").differences[1]
    assert difference is not None
    assert (difference.verdict, difference.method) == (Verdict.WORSE, Method.REPEATS)


def _with_doubt(run: ComparedRun, kind: DoubtKind, *, blocking: bool = False) -> ComparedRun:
    doubt = Doubt(kind, "Something is wrong.", "Mend it.", blocking)
    return replace(run, summary=replace(run.summary, doubts=(doubt,)))


@pytest.mark.parametrize(
    ("kind", "blocking", "ttft", "tpot"),
    [
        (DoubtKind.RATE_NOT_ACHIEVED, False, Verdict.UNKNOWN, Verdict.WORSE),
        (DoubtKind.REQUESTS_FAILED, False, Verdict.WORSE, Verdict.WORSE),
        (DoubtKind.REQUESTS_FAILED, True, Verdict.UNKNOWN, Verdict.UNKNOWN),
        (DoubtKind.SHARED_READS, False, Verdict.WORSE, Verdict.WORSE),
        (DoubtKind.TOKENS_ESTIMATED, False, Verdict.WORSE, Verdict.UNKNOWN),
    ],
)
def test_a_doubt_forbids_what_it_is_about(kind: DoubtKind, blocking: bool, ttft: Verdict, tpot: Verdict) -> None:
    fast, slow = (run_of(records_of(_latencies("a", by))) for by in (1.0, 2.0))
    estimates = dict(slow.estimates) | {"tpot.mean": replace(slow.estimates["ttft.mean"])}
    fast = replace(fast, estimates=dict(fast.estimates) | {"tpot.mean": fast.estimates["ttft.mean"]})
    slow = _with_doubt(replace(slow, estimates=estimates), kind, blocking=blocking)
    comparison = compare([side_of("A", fast), side_of("B", slow)])
    for metric, expected in (("ttft.mean", ttft), ("tpot.mean", tpot)):
        difference = _row(comparison, metric).differences[1]
        assert difference is not None
        assert difference.verdict is expected
    if ttft is Verdict.UNKNOWN:
        assert "B: Something is wrong." in (_row(comparison, "ttft.mean").remark or "")


@pytest.mark.parametrize(
    ("off_share", "verdict"), [(0.03, Verdict.WORSE), (0.4, Verdict.UNKNOWN), (1.5, Verdict.UNKNOWN)]
)
def test_what_a_slow_client_cannot_have_made_is_a_difference(off_share: float, verdict: Verdict) -> None:
    """Twice as slow, measured by clients of which each may be wrong by that much."""
    runs = [run_of(records_of(_latencies("a", by))) for by in (1.0, 2.0)]
    exact = _row(compare([side_of("A", runs[0]), side_of("B", runs[1])]), "ttft.mean").differences[1]
    comparison = compare([side_of(name, _slow_client(run, off_share)) for name, run in zip("AB", runs, strict=True)])
    row = _row(comparison, "ttft.mean")
    found = row.differences[1]
    assert exact is not None
    assert exact.interval is not None
    assert found is not None
    assert found.interval is not None
    assert found.verdict is verdict
    assert bool(row.because) == (verdict is Verdict.UNKNOWN)
    if verdict is Verdict.WORSE:
        assert exact.interval.low is not None
        assert found.interval.low == pytest.approx(100 * ((1 + exact.interval.low / 100) * 0.97**2 - 1))
        assert "its own error is taken off" in (row.remark or "")
        assert not row.lacks
        assert found.percent is not None
        left = 100 * ((1 + found.percent / 100) * 0.97**2 - 1)
        for percent, failed in ((left + 0.1, False), (left - 0.1, True)):
            gate = gated(comparison, percent).gate
            assert gate is not None
            assert gate.failed is failed


def _slow_client(run: ComparedRun, off_share: float) -> ComparedRun:
    off = Off(mean=off_share * (run.summary.ttft.mean or 0.0), p50=1.0, p99=1.0)
    run = _with_doubt(run, DoubtKind.CLIENT_BOUND, blocking=True)
    return replace(run, summary=replace(run.summary, client_error=ClientError(ttft=off)))


def test_a_slow_client_leaves_no_winner_between_two_that_are_not_the_baseline() -> None:
    """8 % between B and C, measured by clients that may be wrong by 10 % each; A is three times as slow."""
    sides = [
        side_of(
            name, *(_slow_client(run_of(records_of(_latencies("a", by * more))), 0.1) for more in (1, 1.001, 1.002))
        )
        for name, by in (("A", 3.0), ("B", 1.0), ("C", 1.08))
    ]
    comparison = compare(sides)
    assert [d and d.verdict for d in _row(comparison, "ttft.mean").differences[1:]] == [Verdict.BETTER] * 2
    assert all(one.winner is None for one in decide(comparison) if "TTFT" in one.wins_for)


def test_whether_a_slow_client_made_it_does_not_hang_on_the_baseline() -> None:
    """5 % between them, and just over 1 % of it left when both clients are taken at their worst."""
    one, other = (_slow_client(run_of(records_of(_latencies("a", by))), 0.0191) for by in (1.0, 1.05))
    for baseline, side, verdict in ((one, other, Verdict.WORSE), (other, one, Verdict.BETTER)):
        found = _row(compare([side_of("A", baseline), side_of("B", side)]), "ttft.mean").differences[1]
        assert found is not None
        assert found.verdict is verdict


def test_answers_of_other_length_are_other_work() -> None:
    runs = [run_of(records_of(_latencies("a"), tokens=tokens)) for tokens in (4, 8)]
    comparison = compare([side_of("A", runs[0]), side_of("B", runs[1])])
    for metric, expected in (("e2el.mean", Verdict.UNKNOWN), ("output_throughput", Verdict.UNKNOWN)):
        difference = _row(comparison, metric).differences[1]
        assert difference is not None
        assert difference.verdict is expected
        assert difference.percent is None
        assert _row(comparison, metric).faster_by_percent is None
    ttft = _row(comparison, "ttft.mean").differences[1]
    assert ttft is not None
    assert ttft.verdict is Verdict.NO_DIFFERENCE
    assert any("did not do the same work" in doubt.sentence for doubt in comparison.doubts)


def test_tokens_of_other_work_a_second_are_no_number_of_times_either() -> None:
    prompts = {name: run_of(records_of(_latencies("a"), tokens=n)) for name, n in (("A", 4), ("B", 8))}
    told = {
        n: replace(r, estimates=dict(r.estimates) | {"input_throughput": r.estimates["ttft.mean"]})
        for n, r in prompts.items()
    }
    row = _row(compare([side_of(name, run) for name, run in told.items()]), "input_throughput")
    assert (row.fastest, row.faster_by_percent) == (None, None)
    assert row.because[0].kind is DoubtKind.LENGTHS_DIFFER


def test_few_answers_are_a_doubt_about_their_tail_and_about_nothing_else() -> None:
    runs = [_with_doubt(run_of(records_of(_latencies(name)[:200])), DoubtKind.TOO_FEW_SAMPLES) for name in "ab"]
    comparison = compare([side_of("A", runs[0]), side_of("B", runs[1])])
    doubted = [row.metric for row in comparison.groups[0].rows if row.cells[0].doubts]
    assert doubted
    assert all(metric.endswith("p99") for metric in doubted)


def test_answers_whose_length_is_only_labelled_are_other_work_too() -> None:
    runs = [run_of(records_of(_latencies("a"), tokens=4)) for _ in "ab"]
    untold = [replace(run, summary=replace(run.summary, total_output_tokens=None)) for run in runs]
    sides = [
        side_of(name, replace(run, setting=replace(run.setting, labels={"output_tokens_p50": length})))
        for name, run, length in zip("AB", untold, ("412", "512"), strict=True)
    ]
    comparison = compare(sides)
    assert comparison.doubts[0].sentence.startswith("B answered with 512.0 tokens a request, A with 412.0")
    assert not [remark for remark in comparison.groups[0].remarks if remark.startswith("Differs")]


def test_tools_that_mean_other_things_by_a_name_are_not_compared_by_it() -> None:
    one, other = (run_of(records_of(_latencies(name))) for name in "ab")
    noted = replace(other, notes={"e2el": "ends with the stream's last line."})
    row = _row(compare([side_of("A", one), side_of("B", noted)]), "e2el.mean")
    assert row.remark is not None
    assert "not defined alike" in row.remark
    assert row.differences[1] is not None
    assert row.differences[1].verdict is Verdict.UNKNOWN


def test_a_side_that_lacks_a_metric_has_no_value_there() -> None:
    one, other = (run_of(records_of(_latencies(name))) for name in "ab")
    less = replace(other, estimates={k: v for k, v in other.estimates.items() if k != "ttft.p99"})
    row = _row(compare([side_of("A", one), side_of("B", less)]), "ttft.p99")
    assert row.cells[1].value is None
    assert row.fastest is None
    assert "Not told by B." in (row.remark or "")


def test_chosen_metrics_come_with_all_their_statistics_and_alone() -> None:
    run = run_of(records_of(_latencies("a")))
    comparison = compare([side_of("A", run), side_of("B", run)], Options(metrics=("tpot",)))
    metrics = {row.metric for row in comparison.groups[0].rows}
    assert {"tpot.mean", "tpot.p50", "tpot.p99"} <= metrics
    assert all(metric.startswith("tpot.") for metric in metrics)


def test_three_sides_are_each_compared_with_the_first() -> None:
    runs = [run_of(records_of(_latencies("a", by))) for by in (1.0, 1.5, 0.6)]
    row = _row(compare([side_of(name, run) for name, run in zip("ABC", runs, strict=True)]), "ttft.mean")
    assert row.differences[0] is None
    assert [d.verdict for d in row.differences if d] == [Verdict.WORSE, Verdict.BETTER]
    assert row.fastest == 2


def test_single_runs_without_a_difference_carry_their_warning_too() -> None:
    comparison = compare([side_of(name, run_of(records_of(_latencies(name, 1.0)))) for name in "ab"])
    assert comparison.headline.startswith("No difference is shown.")
    assert "Each ran once, and the machine itself may have changed between" in comparison.headline


def test_differences_that_are_too_small_to_matter_are_counted_as_such() -> None:
    sides = [
        side_of(name, *(run_of(records_of([by * (200 + i / 100)] * 40), facts=False) for i in range(3)))
        for name, by in (("A", 1.0), ("B", 1.005))
    ]
    comparison = compare(sides, Options(metrics=("ttft.mean",)))
    assert "Of 1 comparison: 1 negligible." in comparison.headline
    assert not comparison.headline.startswith("No difference is shown.")


def test_comparisons_that_are_counted_and_those_that_are_tested_are_told_apart() -> None:
    """``Of 28 comparisons`` stood above ``corrected for 4``, without a word."""
    run = run_of(records_of(_latencies("a")))
    alike = compare([side_of("A", run), side_of("B", run_of(records_of(_latencies("b"))))])
    of = sum(d is not None for row in alike.groups[0].rows for d in row.differences)
    assert f"Of {of} comparisons" in alike.headline
    assert f"of {of} comparisons that can be tested (Holm); the others have no spread" in alike.method
    one = compare(
        [side_of("A", run), side_of("B", run_of(records_of(_latencies("b"))))], Options(metrics=("ttft.mean",))
    )
    assert "chances are corrected for 1 comparison (Holm)." in one.method


def test_a_load_that_is_left_out_raises_no_doubt() -> None:
    run = run_of(records_of(_latencies("a")))
    alone = _with_doubt(replace(run, setting=replace(run.setting, rate=9.0)), DoubtKind.WORKER_LOST, blocking=True)
    comparison = compare([side_of("A", run, alone), side_of("B", run)])
    assert [side.doubts for side in comparison.sides] == [(), ()]
