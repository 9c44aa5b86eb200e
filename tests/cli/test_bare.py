"""A run of which little is said: what it sends, and what is said of it beforehand."""

from pathlib import Path
from typing import Any

import pytest

from withstand.app.beforehand import say_how_long
from withstand.app.stages import all_stages
from withstand.cli.bare import bare_plan
from withstand.cli.build import build_plan
from withstand.cli.entry import exit_code_of
from withstand.spec import Plan


def sizes(**options: Any) -> tuple[int, Any, Any]:
    plan = build_plan(options, bare_plan(options))
    return plan.workload.num_prompts, plan.workload.options.get("input_len"), plan.workload.options.get("output_len")


def test_the_embedded_engine_gets_a_small_load_unless_another_is_typed() -> None:
    assert sizes() == (50, 128, 32)
    assert sizes(request_rate="1,2") == (50, 128, 32)
    assert sizes(num_prompts=7) == (7, 128, 32)
    assert sizes(input_len=9) == (50, 9, None)
    assert sizes(dataset_name="sonnet", duration=5.0) == (100, None, None)


@pytest.mark.parametrize("options", [{"base_url": "http://h:1"}, {"set_path": ('target.base_url="http://h:1"',)}])
def test_an_endpoint_gets_what_it_always_got(options: dict[str, Any]) -> None:
    assert sizes(**options) == (100, None, None)


class Listening:
    """A screen that keeps sentences."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def message(self, text: str) -> None:
        self.said.append(text)

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None


def said_of(plan: Plan) -> str:
    screen = Listening()
    say_how_long(plan, all_stages(plan), screen)
    return " ".join(screen.said)


def test_what_the_small_model_is_to_do_is_said_beforehand() -> None:
    told = said_of(build_plan({}, bare_plan({})))
    for part in ("50 requests", "at most 160 tokens", "may take minutes", "--num-prompts"):
        assert part in told
    assert not said_of(build_plan({"base_url": "http://h:1"}, {}))


URL = ("--base-url", "http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ((*URL, "--dataset-name", "sharegtp"), "'sharegtp' is unknown (did you mean sharegpt?)"),
        ((*URL, "--dataset-name", "sharegpt", "--dataset-path", "no.json"), "no.json"),
        ((*URL, "--set", "workload.options.input_ln=3"), "did you mean input_len or"),
        ((*URL, "--output-dir", "used"), "used"),
        (("p.toml",), "The plan in p.toml is wrong: "),
        (("p.toml", *URL), "The plan in p.toml is wrong: "),
        (("o.toml", *URL), "The plan in o.toml is wrong: "),
        (("good.toml", "--set", "workload.datset=x"), "What was typed is wrong: "),
        (("--plan", "p.toml", *URL), "The plan in p.toml is wrong: "),
    ],
)
@pytest.mark.parametrize("verb", ["run", "find-limit", "ab"])
def test_a_mistake_is_said_first_and_alone(
    verb: str,
    argv: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text('[workload]\ndatset = "x"\n')
    Path("o.toml").write_text("[workload.options]\ninput_ln = 3\n")
    Path("good.toml").write_text("seed = 1\n")
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    if verb == "find-limit":
        argv = (*argv, "--slo", "ttft:p95:500")
    if verb == "ab":
        argv = tuple(word for word in argv if word != "--base-url")
        argv = (*argv, "http://127.0.0.1:2") if len(argv) == 1 or argv[0] in {URL[1], "good.toml"} else argv
    if ("--plan" in argv and verb != "run") or (verb == "ab" and argv[0] == "o.toml"):
        pytest.skip("it is run's, or the load of one side alone")
    assert exit_code_of([verb, *argv]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
