"""What is wrong with a plan is said before the server is started that it asks."""

from pathlib import Path

import pytest

from withstand.cli.entry import exit_code_of
from withstand.stack.ports import free_port

WRONG = [
    (["--dataset-name", "no-such-one"], "'no-such-one' is unknown"),
    (["--dataset-name", "sharegpt", "--dataset-path", "no-such-file.jsonl"], "no-such-file.jsonl"),
    (["--dataset-path", "no-such-file.json"], "random makes its texts up and takes no file"),
    (["--dataset-name", "synthetic", "--set", "workload.path=no-such-file.json"], "that reads no-such-file.json"),
    (["--set", "workload.tokenizer=no-such-one"], "no-such-one"),
]


@pytest.mark.parametrize(("wrong", "told"), WRONG)
def test_no_embedded_engine_is_started_for_a_name_that_is_unknown(
    wrong: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def started(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("withstand.app.started.embedded_engine", started)
    assert exit_code_of(["run", *wrong, "--num-prompts", "1", "--output-dir", str(tmp_path / "r")]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(("wrong", "told"), WRONG)
def test_the_plans_own_server_is_not_started_for_a_name_that_is_unknown(
    wrong: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = tmp_path / "started"
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f"[target]\nbase_url = 'http://127.0.0.1:{free_port()}'\nmodel = 'm'\n"
        f"[target.serve]\nargv = ['touch', {str(mark)!r}]\n"
    )
    assert exit_code_of(["run", str(plan), *wrong, "--num-prompts", "1", "--output-dir", str(tmp_path / "r")]) == 2
    assert told in capsys.readouterr().err
    assert not mark.exists()


def test_a_datasets_path_that_cannot_be_looked_at_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    path = f"/{'n' * 300}"
    asked = ["run", "--base-url", "http://127.0.0.1:9", "--dataset-name", "sharegpt", "--dataset-path", path]
    assert exit_code_of(asked) == 2
    assert f"--dataset-path {path} cannot be read: File name too long" in capsys.readouterr().err
