"""What is typed is kept in the run folder, but for secrets."""

import subprocess
import sys

import pytest

from withstand.cli.typed import without_secrets


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (["run", "plan.toml", "--model", "m"], ["run", "plan.toml", "--model", "m"]),
        (["--header", "Authorization: Bearer sesame"], ["--header", "Authorization=***"]),
        (["--header=X-Any=sesame"], ["--header=X-Any=***"]),
        (["--header", "sesame"], ["--header", "=***"]),
        (["--header"], ["--header"]),
        (["--set", "target.headers.X=sesame"], ["--set", "target.headers.X=***"]),
        (["--set", 'target.headers={"X":"sesame"}'], ["--set", "target.headers=***"]),
        (["--set", 'target={"headers":{"X":"sesame"}}'], ["--set", "target=***"]),
        (["--set=target.extra_body.pass=sesame"], ["--set=target.extra_body.pass=***"]),
        (["--set", "stages.0.max_concurrency=4"], ["--set", "stages.0.max_concurrency=4"]),
        (["--set", "target.base_url=http://u:sesame@h/v1"], ["--set", "target.base_url=http://h/v1"]),
        (["--base-url", "https://u:sesame@h:8/v1"], ["--base-url", "https://h:8/v1"]),
        (["--base-url", "http://[sesame"], ["--base-url", "***"]),
        (["--set", "targets.a.headers.X=sesame"], ["--set", "targets.a.headers.X=***"]),
        (["--set", 'targets={"a":{"headers":{"X":"sesame"}}}'], ["--set", "targets=***"]),
        (["--set", 'targets.a={"headers":{"X":"sesame"}}'], ["--set", "targets.a=***"]),
        (["--set", "targets.a.base_url=http://u:sesame@h/v1"], ["--set", "targets.a.base_url=http://h/v1"]),
        (["--set", "targets.a.model=m"], ["--set", "targets.a.model=m"]),
    ],
)
def test_secrets_are_hidden(typed: list[str], kept: list[str]) -> None:
    assert without_secrets(typed) == kept


@pytest.mark.parametrize(
    "call",
    [
        "from withstand.cli.typed import without_secrets as f; f(['--model', 'x' * 400_000])",
        "from withstand.cli.build import _HEADER as h; assert not h.fullmatch('a=' + ' ' * 400_000 + 'x\\ny')",
    ],
)
def test_a_long_word_takes_no_longer_by_each_of_its_letters(call: str) -> None:
    """By a power of them it would take minutes."""
    subprocess.run([sys.executable, "-c", call], check=True, timeout=60)
