"""Hops in front of an engine, as processes: a real nginx, and the relay that fakes its streams."""

import http.server
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
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


@contextmanager
def failing_relay(upstream: str, field: str) -> Iterator[str]:
    """Passes everything on as it comes, but for streams and answers that ask for ``field``: they end in an error."""

    class Relay(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def do_GET(self) -> None:
            self._pass_on(urllib.request.Request(upstream + self.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if f'"{field}"'.encode() in body:
                self.send_response(500)
                self.end_headers()
                self.wfile.write(b'{"error": {"message": "Unexpected empty grammar stack"}}')
            else:
                self._pass_on(urllib.request.Request(upstream + self.path, body, {"content-type": "application/json"}))

        def _pass_on(self, request: urllib.request.Request) -> None:
            try:
                answer = urllib.request.urlopen(request, timeout=PATIENCE_S)
            except urllib.error.HTTPError as e:
                answer = e
            with answer:
                self.send_response(answer.status)
                self.send_header("content-type", answer.headers["content-type"])
                self.end_headers()
                while piece := answer.read1(65536):
                    self.wfile.write(piece)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Relay) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def _wait_for(port: int) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError(f"nobody listens at {port}")
