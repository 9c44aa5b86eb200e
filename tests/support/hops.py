"""Hops in front of an engine, as processes: a real nginx, and the relay that fakes its streams."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from withstand.stack.ports import free_port

PATIENCE_S = 20.0
HERE = Path(__file__).parent


@contextmanager
def nginx(folder: Path, upstream: str, *directives: str) -> Iterator[str]:
    """The URL of one with Debian's defaults but for these directives."""
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    port = free_port()
    told = " ".join(f"{directive};" for directive in directives)
    paths = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    rooms = " ".join(f"{name}_temp_path {folder}/{name};" for name in paths)
    conf = folder / "nginx.conf"
    conf.write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\nevents {{}}\n"
        f"http {{ access_log off; {rooms} server {{ listen 127.0.0.1:{port}; "
        f"location / {{ proxy_pass {upstream}; {told} }} }} }}\n",
        "utf-8",
    )
    process = subprocess.Popen(
        ["nginx", "-e", str(folder / "early.log"), "-c", str(conf)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def fake_relay(upstream: str) -> Iterator[str]:
    command = [sys.executable, str(HERE / "fake_relay.py"), upstream]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.communicate()


def _wait_for(port: int) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError(f"nobody listens at {port}")
