"""A server for stacks in tests: ``python server.py PORT [CHILDREN] [LATE_S] [SLOW_S]`` answers 200; its children sleep.

It says READY or its children's numbers on stdout, and heeds SIGTERM.
"""

import http.server
import subprocess
import sys
import time


class _Answer(http.server.BaseHTTPRequestHandler):
    slow_s = 0.0

    def do_GET(self) -> None:
        time.sleep(self.slow_s)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    port, children, late_s, _Answer.slow_s = (float(text) for text in [*sys.argv[1:], "0", "0", "0"][:4])
    for _ in range(int(children)):
        subprocess.Popen(["sleep", "600"], start_new_session=True)
    time.sleep(late_s)
    http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), _Answer).serve_forever()


if __name__ == "__main__":
    main()
