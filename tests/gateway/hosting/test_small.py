"""Back-off, causes, secrets: the small pure parts of hosting."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.gateway.hosting.backoff import Backoff
from withstand.gateway.hosting.cause import cause, secrets_of, without_secrets
from withstand.gateway.hosting.config import Hosted


def test_a_command_that_fails_is_left_alone_ever_longer() -> None:
    backoff = Backoff()
    waits = []
    for _ in range(12):
        backoff.failed(100.0)
        waits.append(backoff.left_s(100.0))
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == 60
    assert backoff.left_s(200.0) == 0
    backoff.crashed(up_s=3600.0, now_s=300.0)
    assert backoff.left_s(300.0) == 0, "one that was well for long is started again at once"
    waits = []
    for _ in range(4):
        backoff.crashed(up_s=0.1, now_s=300.0)
        waits.append(backoff.left_s(300.0))
    assert waits == [1, 2, 4, 8]
    backoff.ended()
    backoff.crashed(up_s=0.1, now_s=300.0)
    assert backoff.left_s(300.0) == 0


@given(st.lists(st.sampled_from(["failed", "crashed"]), max_size=2000), st.floats(0, 1e9))
def test_a_pause_is_never_longer_than_a_minute(what: list[str], now_s: float) -> None:
    backoff = Backoff()
    for each in what:
        backoff.failed(now_s) if each == "failed" else backoff.crashed(0.0, now_s)
    assert 0 <= backoff.left_s(now_s) <= 60.001


def test_the_cause_is_the_line_that_tells(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("old: error: of an earlier start\n")
    start = log.stat().st_size
    with log.open("a") as file:
        file.write("loading\nerror: no such model\ngoodbye\n")
    assert cause(log, start, 1, ()) == " (exit code 1): error: no such model"
    assert cause(log, 0, None, ()) == ": error: no such model"
    assert cause(tmp_path / "none", 0, 137, ()) == " (killed by SIGKILL, perhaps for want of memory), and said nothing"


@pytest.mark.parametrize(
    "said",
    [
        "bad key s3cr3t-value",
        "token hf_abcdefghijkl",
        "Authorization: Bearer abc.def",
        "cannot get https://me:pass@example.org/x",
        "option-secret is not allowed",
        "equals-secret is not allowed",
        "key 0123456789abcdef0123456789abcdef01234567",
    ],
)
def test_secrets_are_not_told(said: str) -> None:
    hosted = Hosted(
        command=("engine", "--api-key", "option-secret", "--hf-token=equals-secret", "--port", "9001"),
        env={"MY_API_KEY": "s3cr3t-value", "CUDA_VISIBLE_DEVICES": "0"},
    )
    hidden = secrets_of(hosted, {"HOME": "/home/me"})
    assert hidden == {"option-secret", "equals-secret", "s3cr3t-value"}
    told = without_secrets(said, hidden)
    assert "***" in told
    for secret in ("s3cr3t", "abcdefghijkl", "abc.def", "me:pass", "option-secret", "equals-secret", "89abcdef"):
        assert secret not in told


def test_what_is_no_secret_is_told() -> None:
    said = "error loading model: /srv/models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf: no such file (port 9001)"
    assert without_secrets(said, set()) == said
