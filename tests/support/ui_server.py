"""``withstand ui`` as a user starts it, and a client that asks it anything, also what no browser would."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

UI = (sys.executable, "-m", "withstand", "ui")


def needs_the_extra() -> None:
    """Else the test is skipped."""
    pytest.importorskip("uvicorn", reason="the extra `ui` is not installed")


class Ui:
    """One that runs."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url
        self.port = urlsplit(url).port or 0

    def ask(
        self, path: str, *, method: str = "GET", body: bytes = b"", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """(status, headers, body). ``sec_fetch_site`` is Sec-Fetch-Site."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def json(self, path: str) -> Any:
        status, _, body = self.ask(path)
        assert status == 200, body
        return json.loads(body)

    def entries(self) -> list[dict[str, Any]]:
        """When all is read."""
        while (listing := self.json("/api/runs"))["unread"]:
            pass
        found: list[dict[str, Any]] = listing["entries"]
        return found

    def make(self, what: str, *ids: str) -> tuple[int, Any]:
        wish = json.dumps({"what": what, "ids": ids}).encode()
        status, _, body = self.ask("/api/make", method="POST", body=wish, origin=self.url.rstrip("/"))
        return status, json.loads(body)

    def interrupt(self) -> int:
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


@contextlib.contextmanager
def ui(folder: Path) -> Iterator[Ui]:
    """On a port of its own."""
    needs_the_extra()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [*UI, str(folder), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            assert line.startswith("http://127.0.0.1:"), process.communicate()
            yield Ui(process, line.split()[0])
        finally:
            process.kill()


def copied(run: Path, to: Path, **changes: Any) -> Path:
    """A run folder of the same numbers elsewhere, with other values in ``run.json``."""
    to.mkdir(parents=True)
    for name in ("summary.json", "records.jsonl.gz", "report.html"):
        (to / name).write_bytes((run / name).read_bytes())
    manifest = json.loads((run / "run.json").read_text())
    (to / "run.json").write_text(json.dumps(manifest | changes))
    return to
