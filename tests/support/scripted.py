"""A server of OpenAI's API whose every answer is written beforehand, and the agent in a process of its own."""

import contextlib
import json
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PATIENCE_S = 20.0
Event = dict[str, Any] | str
"""A delta; or ``hang``, ``cut``, ``error``, ``endless`` (one line); or ``raw`` and an event's data.

``length`` is how it finishes.
"""


def said(text: str) -> list[Event]:
    """An answer, in pieces."""
    return [{"content": piece} for piece in re.findall(r"\S+\s*|\s+", text)]


def wants(*calls: tuple[str, dict[str, Any] | str]) -> list[Event]:
    """Calls of tools, their arguments in pieces."""
    events: list[Event] = []
    for i, (name, arguments) in enumerate(calls):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        head = {"index": i, "id": f"c{i}", "type": "function", "function": {"name": name, "arguments": ""}}
        events.append({"tool_calls": [head]})
        events += [
            {"tool_calls": [{"index": i, "function": {"arguments": text[j : j + 7]}}]} for j in range(0, len(text), 7)
        ]
    return events


@dataclass
class Script:
    """``answers`` come one after another; the last one again and again. An int is an HTTP status.

    ``chars_max``: a conversation of more is refused, as one that is longer than the model's context.
    """

    answers: list[list[Event] | int]
    usage: tuple[int, int] | None = (10, 5)
    more: dict[str, Any] = field(default_factory=dict)
    """Of the last event."""
    chars_max: int | None = None
    error: dict[str, Any] | None = None
    """What is said with a status."""
    key: str | None = None
    """The one that it knows."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)
    """Somebody left while the server hung."""
    hangs: threading.Event = field(default_factory=threading.Event)


class Scripted:
    """Listens on loopback until it is closed."""

    def __init__(self, *answers: list[Event] | int, usage: tuple[int, int] | None = (10, 5), **more: Any) -> None:
        self.script = Script(list(answers), usage, more)
        self.over = threading.Event()
        handler = type("Handler", (_Handler,), {"script": self.script, "over": self.over})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    script: Script
    over: threading.Event
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.script.asked.append(body)
        self.script.headers.append({k.lower(): v for k, v in self.headers.items()})
        if self._lacks_key() or self._is_full(body):
            return
        answers = self.script.answers
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, int):
            self._whole(answer)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(ConnectionError):  # whoever has had enough leaves
            self._play(answer)

    def do_GET(self) -> None:
        if not self._lacks_key():
            self._whole(200)

    def _lacks_key(self) -> bool:
        if self.script.key is None or self.headers["authorization"] == f"Bearer {self.script.key}":
            return False
        self._whole(401, {"message": "The API key is missing or unknown.", "code": "invalid_api_key"})
        return True

    def _is_full(self, body: dict[str, Any]) -> bool:
        most = self.script.chars_max
        if most is None or sum(len(text) for text in texts(body["messages"])) <= most:
            return False
        self._whole(400)
        return True

    def _whole(self, status: int, error: dict[str, Any] | None = None) -> None:
        said = "request (2171 tokens) exceeds the available context size (2048 tokens)" if status == 400 else "no"
        text = json.dumps({"error": error or self.script.error or {"message": said}}).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.send_header("retry-after", "7")
        self.end_headers()
        self.wfile.write(text)

    def _play(self, events: list[Event]) -> None:
        finish = "length" if "length" in events else "stop"
        for event in filter(lambda event: event != "length", events):
            if event == "hang":
                self.script.hangs.set()
                while not self.over.is_set():
                    if select.select([self.connection], [], [], 0.02)[0] and not self.connection.recv(1):
                        self.script.left.set()
                        return
            if event in ("hang", "cut"):
                return
            if event == "endless":
                self._endless()
                return
            if isinstance(event, str) and event.startswith("raw "):
                self.wfile.write(f"data: {event[4:]}\n\n".encode())
                continue
            if event == "error":
                self._event({"error": self.script.error or {"message": "out of memory"}})
                return
            self._event({"choices": [{"index": 0, "delta": event, "finish_reason": None}]})
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        if self.script.usage:
            n_in, n_out = self.script.usage
            usage = {"choices": [], "usage": {"prompt_tokens": n_in, "completion_tokens": n_out}}
            self._event({**usage, **self.script.more})
        self.wfile.write(b"data: [DONE]\n\n")

    def _endless(self) -> None:
        self.wfile.write(b"data: ")
        for _ in range(64):
            self.wfile.write(b"x" * (1 << 20))

    def _event(self, tree: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(tree).encode() + b"\n\n")


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    raw: str

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line[6:]) for line in self.raw.split("\n") if line.startswith("data: {")]

    @property
    def text(self) -> str:
        return "".join(c["delta"].get("content") or "" for e in self.events for c in e.get("choices", ()))

    @property
    def steps(self) -> list[dict[str, Any]]:
        return [e["withstand"]["step"] for e in self.events if "step" in e.get("withstand", {})]

    @property
    def finish(self) -> str:
        return next(c["finish_reason"] for e in self.events for c in e.get("choices", ()) if c["finish_reason"])


class Agent:
    """Started with a configuration; it is listening when this returns."""

    def __init__(self, folder: Path, model: str, **config: Any) -> None:
        told = {"base_url": model, "name": "m", "way": config.pop("way", "native")}
        told |= {"max_tokens": config.pop("model_max_tokens", 1024)}
        told |= {"tool_choice": config.pop("tool_choice", "auto")}
        told |= {name: config.pop(name) for name in ("api_key_env",) if name in config}
        tree = {"listen": "127.0.0.1:0", "model": told, "drain_s": 1, **config}
        path = folder / "agent.json"
        path.write_text(json.dumps(tree), "utf-8")
        command = [sys.executable, "-P", "-m", "withstand.agent", str(path)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if match is None:
            raise AssertionError(line + self.process.communicate()[1])
        self.port = int(match[1])

    def ask(
        self, question: str | list[dict[str, Any]], *, headers: dict[str, str] | None = None, **fields: Any
    ) -> Answer:
        messages = [{"role": "user", "content": question}] if isinstance(question, str) else question
        tree = {"model": "agent", "messages": messages, "stream": True, **fields}
        return self.send("/v1/chat/completions", json.dumps(tree).encode(), headers or {})

    def send(self, path: str, data: bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers or {})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return Answer(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read().decode())
        except urllib.error.HTTPError as e:
            with e:
                return Answer(e.code, {k.lower(): v for k, v in e.headers.items()}, e.read().decode())

    def leave(self, *, stream: bool, until: Callable[[], object], headers: dict[str, str] | None = None) -> None:
        """Ask, and close the connection when ``until`` holds."""
        tree = {"model": "agent", "messages": [{"role": "user", "content": "?"}], "stream": stream}
        body = json.dumps(tree).encode()
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as sock:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n"
            more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
            sock.sendall(f"{head}{more}\r\n".encode() + body)
            wait_for(until)

    def metric(self, name: str) -> float:
        lines = self.send("/metrics").raw.splitlines()
        return next((float(x.rpartition(" ")[2]) for x in lines if x.startswith(f"withstand_agent_{name} ")), 0.0)

    def stop(self) -> str:
        """What it said on stderr; an agent that is well says nothing."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=PATIENCE_S)[1]


def wait_for(condition: Callable[[], object]) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_s
        time.sleep(0.01)


def texts(messages: list[dict[str, Any]]) -> Iterator[str]:
    return (str(message.get("content")) for message in messages)
