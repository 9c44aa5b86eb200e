"""A gate fails where a regression is shown, and where a side gave nothing that could show one."""

import pytest
from msgspec.structs import replace

from compared import queue, records_of, run_of, side_of
from withstand.compare.build import Options, compare
from withstand.compare.estimate import Estimate
from withstand.compare.gate import gated
from withstand.compare.run import ComparedRun, ComparedSide
from withstand.compare.shape import Comparison
from withstand.testing.records import make_failure


def _good(name: str) -> ComparedRun:
    run: ComparedRun = run_of(records_of([20 * value for value in queue(400, 0.3, name)]))
    return run


def _dead(name: str) -> ComparedRun:
    run: ComparedRun = run_of([make_failure(i, sent_ms=i * 200 + len(name)) for i in range(400)])
    return run


def _gate(comparison: Comparison) -> tuple[bool, str]:
    gate = gated(comparison, 5.0).gate
    assert gate is not None
    return gate.failed, gate.sentence


@pytest.mark.parametrize("metrics", [(), ("success_rate",)])
def test_a_side_of_which_every_request_failed_does_not_pass(metrics: tuple[str, ...]) -> None:
    comparison = compare([side_of("good", _good("a")), side_of("bad", _dead("b"))], Options(metrics=metrics))
    assert _gate(comparison) == (True, "bad has no good answer at 5 req/s.")
    assert comparison.headline.startswith("bad has no good answer at 5 req/s. Nothing can be concluded.")
    assert "aggregates" not in comparison.headline + comparison.method.casefold()
    assert comparison.groups[0].volumes[1].completed == 0


def test_nor_one_of_which_a_repeat_failed_wholly() -> None:
    sides = [side_of("good", _good("a"), _good("b")), side_of("half", _good("c"), _dead("d"))]
    comparison = compare(sides)
    assert _gate(comparison) == (True, "1 of 2 runs of half has no good answer at 5 req/s.")
    success = next(row for row in comparison.groups[0].rows if row.metric == "success_rate")
    assert (success.cells[1].value, success.fastest) == (0.5, 0)


def test_nor_one_that_has_no_run_at_any_load_of_the_baseline() -> None:
    other = replace(_good("c"), setting=replace(_good("c").setting, rate=9.0))
    sides = [side_of("A", _good("a")), side_of("B", _good("a")), side_of("C", other)]
    assert _gate(compare(sides)) == (True, "C has no run to compare.")


def test_nor_one_whose_rate_is_nothing_though_it_answers() -> None:
    run = _good("b")
    mute = replace(run, estimates=dict(run.estimates) | {"output_throughput": _nothing(run)})
    assert _gate(compare(_sides(_good("a"), mute))) == (True, "Output throughput of B at 5 req/s is 0.")


def _nothing(run: ComparedRun) -> Estimate:
    return replace(run.estimates["output_throughput"], value=0.0)


def _sides(*runs: ComparedRun) -> list[ComparedSide]:
    return [side_of(label, run) for label, run in zip("AB", runs, strict=True)]


def test_a_baseline_that_gave_nothing_fails_nobody() -> None:
    failed, told = _gate(compare(_sides(_dead("a"), _good("b"))))
    assert not failed
    assert "could not have shown" in told


def test_what_could_not_be_seen_is_said() -> None:
    both = [_good("a"), replace(_good("d"), setting=replace(_good("d").setting, rate=9.0))]
    hollow = replace(side_of("C", _good("c")), empty=("runs/hollow",))
    failed, told = _gate(compare([side_of("A", *both), side_of("B", *both), hollow]))
    assert not failed
    assert told.endswith(
        "; 1 of what was measured has no equal on the other side; nothing was measured in runs/hollow."
    )
