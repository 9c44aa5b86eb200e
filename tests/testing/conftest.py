"""A raw client and a tiny parser of its own: nothing here is shared with what is tested."""

import json
import re
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from withstand.testing import Schedule, TruthServer

WORDS = "one two three"
SCHEDULE = Schedule(ttft_ms=4, itl_ms=1, tokens=6)


@dataclass
class Message:
    """An HTTP answer as far as its bytes go."""

    status: int = 0
    version: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    complete: bool = False
    interim: list[int] = field(default_factory=list)
    trailers: bytes = b""
    extensions: list[bytes] = field(default_factory=list)
    rest: bytes = b""


def parse_http(raw: bytes, *, closed: bool) -> Message:
    message = Message()
    while not message.status:
        head, found, raw = raw.partition(b"\r\n\r\n")
        if not found:
            return message
        first, *lines = head.decode("latin-1").split("\r\n")
        version, status, _ = first.split(" ", 2)
        if status.startswith("1"):
            message.interim.append(int(status))
            continue
        message.version, message.status = version, int(status)
        message.headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    if message.headers.get("transfer-encoding") == "chunked":
        _dechunk(message, raw)
    elif "content-length" in message.headers:
        length = int(message.headers["content-length"])
        message.body, message.rest, message.complete = raw[:length], raw[length:], len(raw) >= length
    else:
        message.body, message.complete = raw, closed
    if message.headers.get("content-encoding") == "gzip":
        message.body = zlib.decompressobj(wbits=47).decompress(message.body)
    return message


def _dechunk(message: Message, raw: bytes) -> None:
    while True:
        line, found, raw = raw.partition(b"\r\n")
        if not found:
            return
        size, _, extension = line.partition(b";")
        if extension:
            message.extensions.append(extension)
        if int(size, 16) == 0:
            end = re.match(rb"(.*\r\n)??\r\n", raw, re.DOTALL)
            if end:
                message.trailers, message.complete = end.group(1) or b"", True
                message.rest = raw[end.end() :]
            return
        message.body += raw[: int(size, 16)]
        if len(raw) < int(size, 16) + 2:
            return
        assert raw[int(size, 16) : int(size, 16) + 2] == b"\r\n"
        raw = raw[int(size, 16) + 2 :]


def parse_events(body: bytes, *, eager: bool = False) -> list[str]:
    """The data of each event, as the WHATWG wants it; ``eager`` counts a data line without its blank line too."""
    text = body.decode("utf-8", "ignore" if eager else "strict")
    lines = re.split("\r\n|\n|\r", text)
    events: list[str] = []
    data: list[str] = []
    for line in lines[:-1]:
        if not line:
            if data:
                events.append("\n".join(data))
            data = []
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
    if eager and data:
        events.append("\n".join(data))
    return events


def chunks_of(events: list[str]) -> list[dict[str, Any]]:
    return [json.loads(event) for event in events if event != "[DONE]"]


def text_of(chunk: dict[str, Any]) -> str:
    """All output in a chunk or a body, wherever it stands."""
    said = []
    for choice in chunk.get("choices", []):
        delta = choice.get("delta") or choice.get("message") or choice
        said += [delta.get(k) or "" for k in ("reasoning", "reasoning_content", "content", "text")]
        said += [call["function"]["arguments"] for call in delta.get("tool_calls") or []]
    return "".join(said)


@dataclass
class Heard:
    """What came over the wire: pieces with the time after their read, and how it ended."""

    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    end: str = ""

    @property
    def raw(self) -> bytes:
        return b"".join(piece for _, piece in self.pieces)

    @property
    def message(self) -> Message:
        return parse_http(self.raw, closed=self.end == "closed")

    @property
    def events(self) -> list[str]:
        return parse_events(self.message.body)

    @property
    def text(self) -> str:
        return "".join(map(text_of, chunks_of(self.events)))


def connect(server: TruthServer, cafile: str | None = None) -> socket.socket:
    if server.base_url.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(server.base_url.removeprefix("unix:"))
        return sock
    host, _, port = server.base_url.partition("://")[2].rpartition(":")
    sock = socket.create_connection((host.strip("[]"), int(port)))
    if cafile:
        sock = ssl.create_default_context(cafile=cafile).wrap_socket(sock, server_hostname="127.0.0.1")
    return sock


def request_bytes(path: str, body: dict[str, Any] | None, **headers: str) -> bytes:
    payload = b"" if body is None else json.dumps(body).encode()
    lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", "Host: test", f"Content-Length: {len(payload)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + payload


def listen(sock: socket.socket, patience_s: float = 5.0) -> Heard:
    """Until the answer is complete, the connection ends, or nothing comes for so long."""
    heard = Heard()
    sock.settimeout(patience_s)
    while not heard.message.complete:
        try:
            piece = sock.recv(65536)
        except TimeoutError:
            heard.end = "timeout"
            return heard
        except ConnectionResetError:
            heard.end = "reset"
            return heard
        if not piece:
            heard.end = "closed"
            return heard
        heard.pieces.append((time.monotonic_ns(), piece))
    return heard


def body_of(**fields: Any) -> dict[str, Any]:
    """A streamed chat, unless the fields say otherwise."""
    body = {"model": "truth", "stream": True, "messages": [{"role": "user", "content": WORDS}]}
    return body | {"stream_options": {"include_usage": True}} | fields


@dataclass
class Client:
    """Asks one server, each time over a connection of its own."""

    server: TruthServer
    cafile: str | None = None

    def connect(self) -> socket.socket:
        return connect(self.server, self.cafile)

    def post(self, path: str, body: dict[str, Any] | None, patience_s: float = 5.0, **headers: str) -> Heard:
        with self.connect() as sock:
            sock.sendall(request_bytes(path, body, **headers))
            return listen(sock, patience_s)

    def chat(self, behaviour: str = "plain", pace: str = "", patience_s: float = 5.0, **fields: Any) -> Heard:
        truth = f"behaviour={behaviour},{pace}"
        return self.post("/v1/chat/completions", body_of(**fields), patience_s, X_Truth=truth)

    def complete(self, behaviour: str = "plain", **fields: Any) -> Heard:
        body = {"prompt": WORDS, "stream": True, "stream_options": {"include_usage": True}} | fields
        return self.post("/v1/completions", body, X_Truth=f"behaviour={behaviour}")

    def exchange(self, sock: socket.socket, body: dict[str, Any], **headers: str) -> Heard:
        """Over a connection of the caller's."""
        sock.sendall(request_bytes("/v1/chat/completions", body, **headers))
        return listen(sock)


@pytest.fixture(scope="session")
def _shared_server() -> Iterator[TruthServer]:
    with TruthServer(SCHEDULE) as server:
        yield server


@pytest.fixture
def client(_shared_server: TruthServer) -> Client:
    """Of a server of six tokens, whose log is empty."""
    _shared_server.reset()
    return Client(_shared_server)


@pytest.fixture(scope="session")
def client_of() -> Callable[..., Client]:
    return Client


@pytest.fixture(scope="session")
def tools() -> Any:
    """The parser, for tests that look at bytes."""

    class Tools:
        parse_http = staticmethod(parse_http)
        parse_events = staticmethod(parse_events)
        chunks_of = staticmethod(chunks_of)
        text_of = staticmethod(text_of)
        body_of = staticmethod(body_of)
        request_bytes = staticmethod(request_bytes)
        listen = staticmethod(listen)

    return Tools


@pytest.fixture(scope="session")
def wait_for() -> Callable[..., Any]:
    """Until something holds; fails when it does not within a few seconds."""

    def wait(holds: Callable[[], Any], patience_s: float = 5.0) -> Any:
        end_ns = time.monotonic_ns() + round(patience_s * 1e9)
        while time.monotonic_ns() < end_ns:
            if result := holds():
                return result
            time.sleep(0.01)
        pytest.fail("it did not come about in time")

    return wait
