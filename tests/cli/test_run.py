"""``withstand run`` and ``demo``: what is typed arrives in ``app``, what comes back is printed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from withstand.app.home import NOWHERE
from withstand.app.report import load_run
from withstand.app.screen import Outcome, Screen
from withstand.cli import demo as demo_verb
from withstand.cli import run as run_verb
from withstand.cli.entry import exit_code_of
from withstand.spec import Plan, Poisson

SAMPLE = Path(__file__).parents[1] / "runs" / "samples" / "schema-1"


class App:
    """Stands where ``withstand.app`` is called; returns the sample's outcome."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, dict[str, Any]]] = []
        self.exit_code = 0

    def answer(self, name: str) -> Callable[..., Outcome]:
        def call(*args: object, screen: Screen, **more: object) -> Outcome:
            self.calls.append((name, args[0] if args else None, more))
            summary = load_run(SAMPLE).summary
            screen.message("A sentence.")
            screen.stage_started("rate-4", None, 1, 1)
            screen.stage_finished(summary.stages[0])
            return Outcome(exit_code=self.exit_code, folder=Path("there"), summary=summary)

        return call

    @property
    def plan(self) -> Plan:
        (_, plan, _), *_ = self.calls
        assert isinstance(plan, Plan)
        return plan


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> App:
    fake = App()
    monkeypatch.setattr(run_verb, "run", fake.answer("run"))
    monkeypatch.setattr(run_verb, "resume", fake.answer("resume"))
    monkeypatch.setattr(demo_verb, "demo", fake.answer("demo"))
    return fake


def test_options_and_file_become_the_plan(app: App, tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text('seed = 5\n[target]\nmodel = "of-file"\n', "utf-8")
    typed = ["run", str(file), "--model", "typed", "--request-rate", "2,4", "--set", "drain_s=5"]
    assert exit_code_of(typed) == 0
    assert (app.plan.seed, app.plan.target.model, app.plan.drain_s) == (5, "typed", 5.0)
    assert [s.arrivals for s in app.plan.stages] == [Poisson(2.0), Poisson(4.0)]


def test_the_price_of_an_hour_is_a_part_of_the_plan(app: App) -> None:
    assert exit_code_of(["run", "--price-per-hour", "2.5"]) == 0
    assert app.plan.asked_price.hour() == 2.5


def test_the_command_line_is_handed_on_without_secrets(app: App) -> None:
    exit_code_of(["run", "--model", "m", "--header", "Authorization=sesame"])
    assert app.plan.target.headers == {"Authorization": "sesame"}
    argv = ["run", "--model", "m", "--header", "Authorization=***"]
    assert app.calls[0][2] == {"argv": argv, "home": NOWHERE}


def test_stdout_has_the_result_and_stderr_the_rest(
    app: App, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    Path("there/report.html").touch()
    exit_code_of(["run"])
    printed = capsys.readouterr()
    assert "Serving Benchmark Result" in printed.out
    assert "Mean TTFT (ms):" in printed.out
    assert "Report: there/report.html" in printed.out
    assert printed.err.splitlines() == ["A sentence.", "[1/1] rate-4"]


def test_quiet_leaves_the_result(app: App, capsys: pytest.CaptureFixture[str]) -> None:
    exit_code_of(["run", "--quiet"])
    printed = capsys.readouterr()
    assert "Serving Benchmark Result" in printed.out
    assert printed.err == ""


@pytest.mark.parametrize("verb", ["run", "demo"])
def test_json_is_one_document(app: App, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    exit_code_of([verb, "--json"])
    summary = msgspec.json.decode(capsys.readouterr().out)
    assert [s["name"] for s in summary["stages"]] == ["rate-4", "concurrency-2"]


@pytest.mark.parametrize("code", [0, 1, 3])
def test_the_outcome_decides_the_exit_code(app: App, code: int) -> None:
    app.exit_code = code
    assert exit_code_of(["run"]) == code


def test_resume_goes_on_with_a_folder(app: App) -> None:
    assert exit_code_of(["run", "--resume", "there", "--quiet"]) == 0
    assert app.calls == [("resume", Path("there"), {"home": NOWHERE})]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["--seed", "1"], "--seed"),
        (["--insecure"], "--insecure"),
        (["plan.toml"], "the plan file"),
        (["--set", "seed=1"], "--set"),
    ],
)
def test_resume_takes_nothing_else(app: App, more: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["run", "--resume", "there", *more]) == 2
    assert f"leave out {named}." in capsys.readouterr().err
    assert not app.calls


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        (["--request-rate", "0"], "--request-rate"),
        (["--request-rate", "-1"], "--request-rate"),
        (["--max-concurrency", "x"], "--max-concurrency"),
        (["--num-prompts", "0"], "--num-prompts"),
        (["--num-prompts", "1000000000000000000"], "--num-prompts"),
        (["--input-len", "999999999999"], "--input-len"),
        (["--output-len", "999999999999"], "--output-len"),
        (["--num-warmups", "1000000000000"], "--num-warmups"),
        (["--workers", "1000"], "--workers"),
        (["--request-rate", "1e400"], "--request-rate"),
        (["--request-rate", "1e-300"], "--request-rate"),
        (["--request-rate", "nan"], "--request-rate"),
        (["--max-concurrency", "1000000000000"], "--max-concurrency"),
        (["--max-concurrency", "1", "--duration", "1e-320"], "--duration"),
        (["--burstiness", "x"], "--burstiness"),
        (["--duration", "-1"], "--duration -1: give seconds, or a time with its unit"),
        (["--goodput", "x"], "--goodput"),
        (["--set", "workload.nonsense=1"], "nonsense"),
        (["missing.toml"], "missing.toml"),
        (["--nonsense"], "--nonsense"),
        (["--price-per-hour", "0"], "--price-per-hour"),
        (["--set", "price_per_hour=-1"], "price_per_hour"),
    ],
)
def test_bad_input_is_one_sentence_that_names_it(
    app: App, typed: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(["run", *typed]) == 2
    said = capsys.readouterr().err
    assert named in said
    assert said.count("\n") == 1
    assert not app.calls


def test_demo_hands_on_its_options(app: App, tmp_path: Path) -> None:
    assert exit_code_of(["demo", "--minutes", "0.5", "--output-dir", str(tmp_path)]) == 0
    assert app.calls == [("demo", None, {"minutes": 0.5, "output_dir": tmp_path})]


def test_help_lists_options_under_headings(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["run", "--help"]) == 0
    headings = [line for line in capsys.readouterr().out.splitlines() if line.endswith(":") and line[0] != " "]
    assert headings == ["Target:", "Workload:", "Load:", "Options:", "Cost:"]


@pytest.mark.parametrize("seven", ["7", "7s"])
def test_a_plan_that_comes_along_lies_below_what_is_typed(app: App, seven: str) -> None:
    assert (
        exit_code_of(["run", "--plan", "standard", "--budget", "1.5h", "--output-len", "9", "--duration", seven]) == 0
    )
    assert (app.plan.budget_s, app.plan.workload.options) == (5400, {"input_len": 128, "output_len": 9})
    assert {s.duration_s for s in app.plan.stages if not s.warmup} == {7.0}
    assert [rates.duration_s for rates in app.plan.rates] == [7.0]


def test_the_plans_that_come_along_are_listed(app: App, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["run", "--plan", "list"]) == 0
    assert "standard (13 stages, about 8 min 0 s)" in capsys.readouterr().out
    assert not app.calls


def test_two_plans_are_one_too_many(app: App, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "plan.toml"
    written.write_text("seed = 1")
    assert exit_code_of(["run", "--plan", "soak", str(written)]) == 2
    assert "two plans; give one of them" in capsys.readouterr().err
    assert not app.calls


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--plan", "nope"], "--plan: 'nope' is unknown; choose one of standard"),
        (["--resume", "r", "--budget", "3m"], "leave out --budget"),
        *[
            (["--budget", text], f"--budget {text}: give a time")
            for text in ("20", "m", "-3s", "0s", "nans", "infh", "5d")
        ],
    ],
)
def test_plans_and_budgets_that_mean_nothing(
    app: App, capsys: pytest.CaptureFixture[str], argv: list[str], told: str
) -> None:
    assert exit_code_of(["run", *argv]) == 2
    assert told in capsys.readouterr().err
    assert not app.calls
