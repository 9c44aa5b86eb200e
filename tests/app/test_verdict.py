"""What a run's numbers mean for the exit code, and the sentence on each reason why it is not 0."""

from pathlib import Path

import msgspec
import pytest

from withstand.app.report import load_run, why_partial
from withstand.app.screen import Outcome
from withstand.app.verdict import GOOD, MISSED, NOT_MEASURED, exit_code, missed_slo, not_measured
from withstand.cli.outcome import show_outcome
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.summary import Summary
from withstand.runs import Manifest, RunFolder, RunState, StageEntry
from withstand.spec import Slo, Stage

SAMPLE = Path(__file__).parents[1] / "runs" / "samples" / "schema-1"
BOUND = Doubt(DoubtKind.CLIENT_BOUND, "It may be.", "Look.", blocking=True)


def summary(*doubts: Doubt, **facts: object) -> Summary:
    return msgspec.structs.replace(load_run(SAMPLE).summary, doubts=doubts, **facts)


def manifest(ttft_ms: float | None = None) -> Manifest:
    manifest = RunFolder.open(SAMPLE).manifest
    return msgspec.structs.replace(manifest, plan=msgspec.structs.replace(manifest.plan, goodput=Slo(ttft=ttft_ms)))


@pytest.mark.parametrize("cycles", [1, 2])
def test_a_further_cycle_that_the_budget_leaves_out_is_not_missed(cycles: int) -> None:
    stage = Stage(name="warm-1", max_concurrency=1, num_prompts=4)
    again = msgspec.structs.replace(stage, name="warm-2")
    entries = (
        StageEntry(name="warm-1", stage=stage, state=RunState.DONE),
        StageEntry(name="warm-2", stage=again, state=RunState.LEFT_OUT),
    )
    plan = msgspec.structs.replace(manifest().plan, cycles=cycles)
    told = why_partial(msgspec.structs.replace(manifest(), plan=plan, stages=entries, state=RunState.DONE))
    assert (told is None) is (cycles == 2)


def test_a_run_that_stands_is_good() -> None:
    assert exit_code(summary(), manifest()) == GOOD
    assert exit_code(summary(), manifest(1e6)) == GOOD
    assert not_measured(summary()) is missed_slo(summary(), manifest(1e6)) is None


def test_a_missed_slo_is_told_also_where_the_headline_cannot_stand() -> None:
    stages = tuple(msgspec.structs.replace(stage, request_goodput=0.0) for stage in summary().stages)
    assert exit_code(summary(stages=stages), manifest(1.0)) == MISSED
    assert exit_code(summary(BOUND, stages=stages), manifest(1.0)) == NOT_MEASURED
    assert str(missed_slo(summary(BOUND, stages=stages), manifest(1.0))).startswith("The SLO was missed")


def test_shares_are_written_as_everywhere() -> None:
    stages = tuple(msgspec.structs.replace(stage, request_goodput=0.0) for stage in summary().stages)
    told = missed_slo(summary(stages=stages), manifest(1.0))
    assert told == "The SLO was missed: fewer than 99 % of the requests were good at rate-4 (0 %), concurrency-2 (0 %)."


def test_what_forbids_the_headline_is_named() -> None:
    assert not_measured(summary(BOUND)) == "The numbers do not stand: a doubt forbids the headline (client bound)."
    assert not_measured(summary(stages=())) == "Nothing was measured."
    assert not_measured(summary(complete=False, partial="Partial: cut.")) == "Partial: cut."


def test_each_reason_is_a_sentence_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome(NOT_MEASURED, Path("there"), summary(BOUND), missed="Missed.", unmeasured="Not measured.")
    assert show_outcome(outcome, as_json=True) == NOT_MEASURED
    assert capsys.readouterr().err.splitlines() == ["withstand: Missed.", "withstand: Not measured."]
