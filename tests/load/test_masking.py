"""Secrets that a server quotes do not reach a file or a screen."""

import http.server
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from one_model import OneModel
from withstand.load.masking import Mask


def test_longer_secrets_go_first_and_short_ones_are_no_secrets() -> None:
    assert Mask(["abcd", "abcdef", "x"])("abcdef abcd x") == "*** *** x"


def test_a_secret_that_was_cut_is_masked_as_far_as_it_goes() -> None:
    mask = Mask(["sk-1234567890"])
    assert mask("key 'sk-12345' and sk-1234567890.") == "key '***' and ***."
    assert mask("sk-123") == "***"
    assert mask("sk-12 is too little to tell") == "sk-12 is too little to tell"


class Echo(OneModel):
    """Refuses with what it was told, as some do."""

    def asked_for(self, body: bytes) -> None:
        key, team = self.headers["Authorization"], self.headers["X-Team"]
        self.answer(401, {"error": f"bad key {key}, X {team}, {body.decode()}"})


@pytest.mark.parametrize("warmups", ["0", "1"])
def test_an_echoed_key_is_masked_everywhere(tmp_path: Path, warmups: str) -> None:
    (tmp_path / "key").write_text("hunter2-key")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base_url = f"http://127.0.0.1:{server.server_port}"
        options = "--api-key-file key --header X-Team=hunter2-team --num-prompts 3 --input-len 4 --output-dir r "
        options += f"--set target.extra_body.deep.api_key=hunter2-body --num-warmups {warmups}"
        command = [sys.executable, "-m", "withstand", "run", "--base-url", base_url, *options.split()]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        server.shutdown()
    assert done.returncode == 3
    assert "***" in done.stdout + done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    for path in (tmp_path / "r").glob("*"):
        assert b"hunter2" not in path.read_bytes()
