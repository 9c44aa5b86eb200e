"""A wrong configuration ends in one sentence that names the key."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from withstand.agent.config import config_of
from withstand.errors import SpecError

MODEL = {"base_url": "http://127.0.0.1:1", "name": "m"}


@pytest.mark.parametrize(
    ("tree", "where"),
    [
        ({}, "model"),
        ({"model": {**MODEL, "base_url": "ftp://x"}}, "$.model.base_url"),
        ({"model": {**MODEL, "way": "magic"}}, "$.model.way"),
        ({"model": MODEL, "listen": "0.0.0.0:80"}, "$.listen"),
        ({"model": MODEL, "listen": "here"}, "$.listen"),
        ({"model": MODEL, "http": {"allow": ["example.org"]}}, "$.http.allow[0]"),
        ({"model": MODEL, "tool": []}, "tool"),
        ({"model": MODEL, "tools": ["shell"]}, "$.tools[0]"),
        ({"model": {**MODEL, "api_key_env": "A", "api_key_file": "b"}}, "$.model"),
    ],
)
def test_each_mistake_is_named(tree: dict[str, Any], where: str) -> None:
    with pytest.raises(SpecError) as caught:
        config_of(tree)
    assert where in str(caught.value)


@pytest.mark.parametrize(
    ("toml", "word"),
    [
        ('search = { path = "/no/such/folder" }', "search.path"),
        (f'search = {{ path = "/{"n" * 300}" }}', "cannot be read: File name too long."),
        (f'sessions = {{ path = "/{"n" * 300}/s.db" }}', "cannot be read: File name too long."),
        ('search = { kind = "altavista" }', "search.kind"),
        ('files = { allow = ["/no/such/file"] }', "files.allow[0]"),
        ('sessions = { path = "/no/such/folder/s.db" }', "sessions.path"),
        ('model = { base_url = "http://127.0.0.1:1", name = "m", api_key_env = "NO_SUCH_KEY" }', "NO_SUCH_KEY"),
    ],
)
def test_what_is_not_there_ends_in_a_sentence(tmp_path: Path, toml: str, word: str) -> None:
    pytest.importorskip("langgraph", reason="the agent's extra is not installed: make test-agent")
    model = "" if toml.startswith("model") else 'model = { base_url = "http://127.0.0.1:1", name = "m" }\n'
    path = tmp_path / "agent.toml"
    path.write_text(f'listen = "127.0.0.1:0"\n{model}{toml}\n')
    done = subprocess.run(
        [sys.executable, "-m", "withstand.agent", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
