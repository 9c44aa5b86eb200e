"""Run folders that are given to be fitted: what cannot be meant is refused by name."""

import gzip
import itertools
import shutil
from pathlib import Path
from random import Random

import pytest

from withstand import clock
from withstand.app.fit import fitted_runs
from withstand.errors import MeasureError, UsageError
from withstand.record import encode_record
from withstand.runs import (
    Asked,
    AskedSide,
    AskedTurns,
    Manifest,
    RunFolder,
    RunState,
    StageEntry,
    TargetsFolder,
    TurnsFolder,
    this_process,
)
from withstand.sim import Asked as AskedOfSim
from withstand.sim import Parameters, answers
from withstand.spec import Plan, Poisson, Stage, Target, Workload
from withstand.testing.records import make_record

ENGINE = Parameters(step_ms=8, sequence_ms=0.7, prefill_token_ms=0.05, overhead_ms=2, prefix_caching=False)
TEMPLATE_TOKENS = 30


@pytest.fixture(scope="module")
def fittable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a known engine, whose chat template adds 30 tokens: loads and lengths that differ."""
    random, lines, entries = Random(1), [], []
    for index, (rate_rps, length) in enumerate(itertools.product((0.7, 8.0), (16, 100, 400))):
        workload = Workload(options={"input_len": length, "output_len": 20})
        stage = Stage(name=f"s{index}", arrivals=Poisson(rate_rps), num_prompts=40, workload=workload)
        entries.append(StageEntry(name=stage.name, stage=stage, place=index, state=RunState.DONE))
        at_s, asked = 1000.0 * index, []
        for _ in range(40):
            at_s += random.expovariate(rate_rps)
            tokens = {"prompt_tokens": length + TEMPLATE_TOKENS, "output_tokens": 20}
            asked.append(AskedOfSim(at_ns=round(at_s * 1e9), **tokens))
        for number, answer in enumerate(answers(asked, ENGINE)):
            facts = {"sent_ns": answer.asked.at_ns, "chunk_ns": list(answer.at_ns), **tokens}
            lines.append(encode_record(make_record(number, stage=index, **facts)) + b"\n")
    folder = _run(tmp_path_factory.mktemp("fit") / "r", tuple(entries))
    (folder.path / "records.jsonl.gz").write_bytes(gzip.compress(b"".join(lines)))
    return folder.path


def _run(path: Path, stages: tuple[StageEntry, ...] = ()) -> RunFolder:
    anchor, writer = clock.anchor(), this_process()
    return RunFolder.create(
        path, Manifest(version="0", created_utc="", anchor=anchor, plan=Plan(), writer=writer, stages=stages)
    )


def test_of_several_targets_runs_the_user_has_to_choose(tmp_path: Path) -> None:
    plan = Plan(targets={"a": Target(), "b": Target()})
    folder = TargetsFolder.create(
        tmp_path / "r", Asked(version="0", created_utc="now", plan=plan, writer=this_process())
    )
    with pytest.raises(UsageError, match="r holds a run for each of its targets; none has begun yet"):
        fitted_runs([folder.path])
    manifest = Manifest(version="0", created_utc="", anchor=clock.anchor(), plan=plan, writer=this_process())
    for name in "ab":
        RunFolder.create(folder.of(name), manifest)
    with pytest.raises(UsageError, match=r"choose those of one engine: .*/r/a, .*/r/b\.$"):
        fitted_runs([folder.path])


def test_a_run_without_records_is_told_as_that(tmp_path: Path) -> None:
    folder = _run(tmp_path / "r")
    for _ in range(2):
        with pytest.raises(MeasureError, match=r"r has no records: its records\.jsonl\.gz is missing or empty"):
            fitted_runs([folder.path])
        (folder.path / "records.jsonl.gz").write_bytes(gzip.compress(b""))


def test_runs_of_one_name_are_told_apart_and_none_counts_twice(fittable: Path, tmp_path: Path) -> None:
    """Of x/r and y/r only one was fitted, without a word."""
    shutil.copytree(fittable, tmp_path / "x" / "r")
    shutil.copytree(fittable, tmp_path / "y" / "r")
    alone, both = (fitted_runs([tmp_path / "x" / "r"]), fitted_runs([tmp_path / "x" / "r", tmp_path / "y" / "r"]))
    assert both.answers == 2 * alone.answers
    with pytest.raises(UsageError, match="given twice"):
        fitted_runs([tmp_path / "x" / "r", tmp_path / "x" / ".." / "x" / "r"])


def test_what_the_chat_template_adds_is_part_of_the_model(fittable: Path) -> None:
    assert fitted_runs([fittable]).parameters.template_tokens == TEMPLATE_TOKENS


def test_of_two_sides_the_user_has_to_choose(tmp_path: Path) -> None:
    sides = {side: AskedSide(label=side, plan=Plan()) for side in "ab"}
    asked = AskedTurns(version="0", created_utc="now", pairs=4, writer=this_process(), **sides)
    folder = TurnsFolder.create(tmp_path / "abr", asked)
    with pytest.raises(
        UsageError, match=r"the blocks of two sides; choose those of one engine: .*abr/a-\*, .*abr/b-\*"
    ):
        fitted_runs([folder.path])


def test_damaged_samples_are_no_model(fittable: Path, tmp_path: Path) -> None:
    shutil.copytree(fittable, tmp_path / "r")
    (tmp_path / "r" / "samples.jsonl.gz").write_bytes(gzip.compress(b"no sample\n" * 500)[:30])
    with pytest.raises(MeasureError, match=r"samples of the server's side are damaged"):
        fitted_runs([tmp_path / "r"])


@pytest.mark.parametrize("cut", [False, True])
def test_damaged_records_are_no_model(cut: bool, tmp_path: Path) -> None:
    manifest = Manifest(version="0", created_utc="", anchor=clock.anchor(), plan=Plan(), writer=this_process())
    folder = RunFolder.create(tmp_path / "r", manifest)
    text = b"not a record\n" * 500
    (folder.path / "records.jsonl.gz").write_bytes(gzip.compress(text)[: 30 if cut else None])
    with pytest.raises(MeasureError, match="r are damaged"):
        fitted_runs([folder.path])
