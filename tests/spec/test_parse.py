"""Text → Plan: what is allowed, and the sentence for what is not."""

from pathlib import Path

import msgspec
import pytest

from withstand.errors import SpecError, UsageError
from withstand.spec import Constant, Inf, Plan, Step, Target, parse_plan, plan_from_file, redacted, set_path


def test_an_empty_plan_has_one_stage_with_a_name() -> None:
    plan = parse_plan({})
    assert [s.name for s in plan.stages] == ["stage-1"]
    assert plan.stages[0].arrivals == Inf()


def test_arrivals_are_told_apart_by_kind() -> None:
    stages = [
        {"arrivals": {"kind": "constant", "rate": 3}},
        {"arrivals": {"kind": "step", "parts": [{"rate": 0, "duration_s": 1}, {"rate": 5, "duration_s": 2}]}},
    ]
    plan = parse_plan({"stages": stages})
    assert plan.stages[0].arrivals == Constant(3)
    assert isinstance(plan.stages[1].arrivals, Step)


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        ({"stages": [{"arrivals": {"kind": "poisson", "rate": 0}}]}, "$.stages[0].arrivals.rate"),
        ({"stages": [{"arrivals": {"kind": "poisson", "rate": -1}}]}, "$.stages[0].arrivals.rate"),
        ({"stages": [{"arrivals": {"kind": "magic"}}]}, "$.stages[0].arrivals.kind"),
        ({"stages": []}, "$.stages"),
        ({"stages": [{"max_concurrency": 0}]}, "$.stages[0].max_concurrency"),
        ({"stages": [{"name": "a"}, {"name": "a"}]}, "$.stages[1].name"),
        ({"target": {"timeouts": {"read_s": 0}}}, "$.target.timeouts.read_s"),
        ({"goodput": {"ttft": -5}}, "$.goodput.ttft"),
        ({"drain_s": float("inf")}, "$.drain_s"),
        ({"stages": [{"duration_s": float("inf")}]}, "$.stages[0].duration_s"),
        ({"stages": [{"arrivals": {"kind": "constant", "rate": float("inf")}}]}, "$.stages[0].arrivals.rate"),
        ({"stages": [{"max_concurrency": 10**20}]}, "$.stages[0].max_concurrency"),
        ({"workers": 10**6}, "$.workers"),
        ({"fleet": "raybans"}, "$.fleet"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(tree: dict[str, object], path: str) -> None:
    with pytest.raises(SpecError, match=f"`{path}`".replace("$", r"\$").replace("[", r"\[").replace("]", r"\]")):
        parse_plan(tree)


@pytest.mark.parametrize(
    ("tree", "key", "path"),
    [
        ({"sed": 1}, "sed", None),
        ({"workload": {"datset": "x"}}, "datset", r"\$\.workload"),
        ({"stages": [{}, {"arivals": {}}]}, "arivals", r"\$\.stages\[1\]"),
    ],
)
def test_an_unknown_key_is_refused_with_its_path(tree: dict[str, object], key: str, path: str | None) -> None:
    with pytest.raises(SpecError, match=f"`{key}`" + (f".*{path}" if path else "")):
        parse_plan(tree)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.toml", 'seed = 7\n[target]\nbase_url = "http://x"\n'),
        ("p.yaml", "seed: 7\ntarget:\n  base_url: http://x\n"),
        ("p.json", '{"seed": 7, "target": {"base_url": "http://x"}}'),
    ],
)
def test_files(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert parse_plan(plan_from_file(path)) == parse_plan({"seed": 7, "target": {"base_url": "http://x"}})


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("p.json", b"[" * 100_000),
        ("p.toml", b"seed = "),
        ("p.json", b"{"),
        ("p.yaml", b"a: [1"),
        ("p.toml", b"\xff"),
        ("p.json", b"[1]"),
    ],
)
def test_files_that_cannot_be_read_say_which_and_why(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UsageError, match=name):
        plan_from_file(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        plan_from_file(tmp_path / "none.toml")


def test_set_reaches_everywhere() -> None:
    tree: dict[str, object] = {"stages": [{}]}
    for assignment in (
        "stages.0.max_concurrency=4",
        "workload.options.input_len=512",
        "target.model=some-model",
        "target.stream=false",
        'target.headers={"X-A": "b"}',
    ):
        set_path(tree, assignment)
    plan = parse_plan(tree)
    assert plan.stages[0].max_concurrency == 4
    assert plan.workload.options == {"input_len": 512}
    assert (plan.target.model, plan.target.stream, plan.target.headers) == ("some-model", False, {"X-A": "b"})


@pytest.mark.parametrize("assignment", ["", "seed", "=1", "seed.x=1", "stages.7.name=a", "stages.x.name=a"])
def test_set_says_what_is_wrong(assignment: str) -> None:
    tree: dict[str, object] = {"seed": 1, "stages": [{}]}
    with pytest.raises(UsageError, match="--set"):
        set_path(tree, assignment)


def test_no_secret_is_left_in_what_is_written() -> None:
    target = Target(
        base_url="https://me:hunter2@host/v1?key=hunter2",
        headers={"Authorization": "Bearer hunter2", "X-Api-Key": "hunter2", "X-Trace": "hunter2"},
        extra_body={"api_token": "hunter2", "deep": [{"key": "hunter2"}], "max_tokens": 5, "temperature": 0},
    )
    written = msgspec.json.encode(redacted(Plan(target=target))).decode()
    assert "hunter2" not in written
    assert '"max_tokens":5' in written


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("http://127.0.0.1:18471", "http://127.0.0.1:18471"),
        ("https://host.example/v1", "https://host.example/v1"),
        ("http://me:secret@host/v1", "http://host/v1"),
        ("127.0.0.1:18471", "http://127.0.0.1:18471"),
        ("localhost:8000/v1", "http://localhost:8000/v1"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("unix:/run/engine.sock", "unix:/run/engine.sock"),
    ],
)
def test_a_url_in_the_place_of_a_plan_is_told_where_it_belongs(typed: str, url: str) -> None:
    with pytest.raises(UsageError) as raised:
        plan_from_file(Path(typed))
    assert str(raised.value) == f"{url} is a URL, and no plan's file: give it as --base-url {url}."


@pytest.mark.parametrize("typed", ["plan.toml", "plans/a.toml", "/no/such/plan.toml", "a:b", "http"])
def test_a_file_that_is_not_there_is_no_url(typed: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        plan_from_file(Path(typed))
