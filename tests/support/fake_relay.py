"""A relay as there are some: it waits for the whole answer and plays it out word by word, an error too.

``python fake_relay.py UPSTREAM`` prints the port that it listens at. It drops every field that it does not know,
forgets the client's leaving, and says 200 whatever happens.
"""

import http.server
import json
import sys
import time
import urllib.request

KNOWN = {"model", "messages", "stream", "temperature", "max_tokens"}
PACE_S = 0.002
UPSTREAM = sys.argv[1] if len(sys.argv) > 1 else ""


class Relay(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        with urllib.request.urlopen(UPSTREAM + self.path, timeout=20) as answer:
            self._say(answer.read())

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        try:
            asked = json.loads(raw)
            text = self._answer({key: value for key, value in asked.items() if key in KNOWN})
        except Exception as e:  # noqa: BLE001  this is what it is there for
            asked, text = {}, f"Backend Error ({UPSTREAM}): {e}"
        if asked.get("stream"):
            self._play(text)
        else:
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            self._say(json.dumps({"object": "chat.completion", "choices": [choice]}).encode())

    def _answer(self, body: dict[str, object]) -> str:
        data = json.dumps({**body, "stream": False}).encode()
        request = urllib.request.Request(UPSTREAM + self.path, data, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            content: str = json.load(answer)["choices"][0]["message"]["content"]
        return content

    def _say(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _play(self, text: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for word in text.split():
            self._event(json.dumps({"choices": [{"index": 0, "delta": {"content": word + " "}}]}))
            time.sleep(PACE_S)
        self._event(json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
        self._event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, data: str) -> None:
        event = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))

    def log_message(self, *_: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that has left is no news."""


if __name__ == "__main__":
    with Server(("127.0.0.1", 0), Relay) as server:
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()
