"""A real model: started by its first request, and gone when idle."""

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gateways import Gateway, body, post
from withstand.stack.machine import usable_cores
from withstand.stack.model import ready_model
from withstand.stack.ports import free_port

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="the engine's extra is not installed"),
]


def test_a_model_is_loaded_for_its_first_request(gateway: Callable[[str], Gateway], tmp_path: Path) -> None:
    file = ready_model(lambda *_: None)
    port = free_port()
    command = [sys.executable, "-P", "-m", "withstand.stack.llamacpp_server", "--model", str(file.path)]
    command += ["--alias", "tiny", "--port", str(port), "--parallel", "1", "--context", "512"]
    command += ["--threads", str(min(usable_cores(), 4))]
    words = ", ".join(f"'{word}'" for word in command)
    gw = gateway(
        f"[host]\nstate = '{tmp_path / 'state'}'\n[[models.tiny.engines]]\nurl = 'http://127.0.0.1:{port}'\n"
        f"command = [{words}]\nenv = {{ GOMP_SPINCOUNT = '1000' }}\nidle_s = 1\nstart_timeout_s = 120\n"
    )
    content = body("tiny", messages=[{"role": "user", "content": "Say hi."}], max_tokens=4)
    client = gw.client()
    client.sock.settimeout(120)
    first = client.send(post(content)).answer()
    assert first.status == 200, first.raw
    assert first.json["usage"]["completion_tokens"] > 0
    timing = first.header("server-timing") or ""
    parts = {name: float(ms) for name, ms in re.findall(r"(\w+);dur=([\d.]+)", timing)}
    assert parts["cold"] > 0
    assert parts["queue"] >= parts["cold"] * 0.9
    gw.until(f'engine_up{{engine="127.0.0.1:{port}"}}', 0)
