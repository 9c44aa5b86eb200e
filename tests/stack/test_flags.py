"""Options that an installed engine does not know are named before it is started."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from withstand.cli.up import verb
from withstand.errors import EngineError, UsageError
from withstand.stack.blueprint import Process
from withstand.stack.flags import checked, unknown_flags, why_absent

HELP = (
    "usage: serve [--port PORT] [--max_num_seqs N] [--enable-prefix-caching | --no-enable-prefix-caching] [--dtype T]"
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path / "state"))


def program(folder: Path, text: str = HELP, code: int = 0) -> Path:
    """An engine that prints its help, and notes what it was asked."""
    path = folder / "engine"
    path.write_text(f"#!/bin/sh\necho \"$@\" >> '{folder}/asked'\ncat <<'END'\n{text}\nEND\nexit {code}\n")
    path.chmod(0o755)
    return path


def process(*argv: str, kind: str = "vllm") -> Process:
    return Process(name="e", kind=kind, argv=argv, port=1)


def test_dashes_and_underscores_and_negations_are_one_option() -> None:
    argv = (
        "serve",
        "--max-num-seqs",
        "4",
        "--no-enable-prefix-caching",
        "--dtype=half",
        "--",
        "--port=1",
        "-x",
        "a--b",
    )
    assert unknown_flags(argv, HELP) == ()
    assert unknown_flags(("--por", "1", "--new-thing=3"), HELP) == ("--por", "--new-thing")


def test_an_engine_is_asked_for_all_of_its_help_without_its_model(tmp_path: Path) -> None:
    engine = program(tmp_path)
    (found,) = checked([process(str(engine), "serve", "/models/a", "--port", "1", "--swap-space", "2")], {})
    assert found.unknown == ("--swap-space",)
    assert (tmp_path / "asked").read_text() == "serve --help=all\n"


@pytest.mark.parametrize(
    ("text", "code", "why"), [("no such thing", 1, "no such thing"), ("no options here", 0, "no options here")]
)
def test_an_engine_that_cannot_tell_is_no_mistake(tmp_path: Path, text: str, code: int, why: str) -> None:
    (found,) = checked([process(str(program(tmp_path, text, code)), "serve", "--x")], {})
    assert (found.unknown, found.why_not) == ((), why)


def test_a_program_that_is_not_there_one_that_may_not_run_and_one_that_nobody_knows(tmp_path: Path) -> None:
    (tmp_path / "text").touch()
    programs = ("/no/such/engine", "nosuchserver", str(tmp_path), str(tmp_path / "text"), sys.executable)
    assert [why_absent(process(each, kind="command"), {}) for each in programs] == [
        "there is no program /no/such/engine",
        "there is no program nosuchserver",
        f"there is no program {tmp_path}",
        f"{tmp_path}/text may not be executed",
        None,
    ]
    assert not checked([process(sys.executable, "--x", kind="command")], {})[0].is_asked


def test_up_check_of_an_engine_that_is_not_there_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("[engines.a]\nkind = 'command'\nargs = ['nosuchserver']\nserved_as = 'm'\n")
    done = CliRunner().invoke(verb, [str(tmp_path / "s.toml"), "--check"])
    assert isinstance(done.exception, EngineError)
    assert str(done.exception).startswith("a: there is no program nosuchserver. ")


def test_up_check_names_the_options_and_starts_nothing(tmp_path: Path) -> None:
    engine = program(tmp_path, f"{HELP} [--host H] [--served-model-name N]")
    told = f"[engines.a]\nkind = 'vllm'\npython = '{engine}'\nmodel = 'm'\n"
    (tmp_path / "s.toml").write_text(told + "max_sequences = 4\n")
    done = CliRunner().invoke(verb, [str(tmp_path / "s.toml"), "--check"])
    assert done.exception is None, done.output
    assert "a: every option is known" in done.output
    (tmp_path / "s.toml").write_text(told + "args = ['--swap-space', '4']\n")
    done = CliRunner().invoke(verb, [str(tmp_path / "s.toml"), "--check"])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("a does not know --swap-space. ")
    assert not (tmp_path / "state").exists()


def test_an_engine_that_rests_is_asked_too_and_all_others_are_one_line(tmp_path: Path) -> None:
    engine = program(tmp_path, f"{HELP} [--host H] [--served-model-name N]")
    told = f"kind = 'vllm'\npython = '{engine}'\nmodel = 'm'\nargs = ['--swap-space', '4']\n"
    rests = f"[engines.a]\n{told}[engines.a.deploy]\nmin_replicas = 0\n[gateway]\n"
    (tmp_path / "s.toml").write_text(rests + "[engines.b]\nkind = 'sim'\n")
    done = CliRunner().invoke(verb, [str(tmp_path / "s.toml"), "--check"])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("a does not know --swap-space. ")
    assert done.output == "Programs that are there, and are not asked for their options: b, gateway\n"
