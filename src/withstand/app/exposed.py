"""The run against a stack, for the stack's Prometheus: a process beside the run, which it does not disturb.

``python -m withstand.app.exposed PORT POINTER``: ``POINTER`` is a file that holds the folder of the run, once there is
one. A run folder can be followed by anybody, so whoever measures only says where it is.
"""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from withstand.app.follow import Follower
from withstand.errors import WithstandError
from withstand.metrics.live.exposition import run_exposition
from withstand.processes.courtesy import go_after_others
from withstand.runs import RunFolder

_HOST = "127.0.0.1"
POINTER = "run"
"""The file's name in a stack's folder."""


class _Run:
    """The one that goes on, or the last one."""

    def __init__(self, pointer: Path) -> None:
        self._pointer = pointer
        self._folder: Path | None = None
        self._follower: Follower | None = None
        self._price: float | None = None

    def page(self) -> str:
        """As it is now."""
        self._look_for_another()
        if self._folder is None or self._follower is None:
            return run_exposition(None, "", None)
        return run_exposition(self._follower.look(), self._folder.name, self._price)

    def _look_for_another(self) -> None:
        try:
            folder = Path(self._pointer.read_text("utf-8"))
            if folder != self._folder:
                self._price = RunFolder.open(folder).manifest.plan.asked_price.hour()
                self._folder, self._follower = folder, Follower(folder)
        except (OSError, WithstandError):  # there is none yet
            return


def main() -> None:
    """Until ended."""
    go_after_others()
    run = _Run(Path(sys.argv[2]))

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = run.page() if self.path == "/metrics" else ""
            self.send_response(200 if self.path in {"/metrics", "/health"} else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    HTTPServer((_HOST, int(sys.argv[1])), Page).serve_forever()


if __name__ == "__main__":
    main()
