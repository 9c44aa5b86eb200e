"""An engine as a program of its own: ``python -S small_engine.py PORT FOLDER [refuse|never|forks|prefill]``.

In the folder it notes each start with its pid, and is told by files: while ``cold`` is there it is not ready, while
``hold`` is there its answers do not end; ``crash`` ends it with the next request. One that prefills gives handles.
"""

import http.server
import os
import pathlib
import subprocess
import sys
import time

EVENT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
HANDLE = b'{"kv_transfer_params":{"remote_port":1}}'
LOOK_S = 0.01

port, folder, *how = sys.argv[1:]
place = pathlib.Path(folder)


def told(name: str) -> bool:
    return (place / name).exists()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(503 if told("cold") else 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        if told("crash"):
            sys.stderr.write("fatal: this was too much\n")
            os._exit(3)
        if how == ["prefill"]:
            self.prefill()
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.say(EVENT)
        while told("hold"):
            time.sleep(LOOK_S)
        self.say(EVENT)
        self.say(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def prefill(self) -> None:
        while told("hold"):
            time.sleep(LOOK_S)
        self.send_response(200)
        self.send_header("content-length", str(len(HANDLE)))
        self.end_headers()
        self.wfile.write(HANDLE)

    def say(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, *args: object) -> None:
        """It says nothing."""


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True


if how == ["forks"]:
    apart = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
    (place / "apart").write_text(str(apart.pid))
with (place / "starts").open("a") as starts:
    starts.write(f"{os.getpid()}\n")
if how == ["refuse"]:
    sys.exit(f"error: no such model; the key was {os.environ.get('ENGINE_KEY')}")
if how == ["never"]:
    time.sleep(600)
Server(("127.0.0.1", int(port)), Handler).serve_forever()
