"""A gateway in a process of its own, and a client that sees every byte of it."""

import re
import signal
import socket
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from forked import Forked

PATIENCE_S = 10.0
NO_FAULTS = ("withstand: The engine ", "withstand: The configuration ")
CHAT = "/v1/chat/completions"


def body(model: str = "m", **fields: Any) -> bytes:
    return msgspec.json.encode({"model": model, **fields})


def post(content: bytes, path: str = CHAT, more: str = "", version: str = "1.1") -> bytes:
    head = f"POST {path} HTTP/{version}\r\nhost: gateway\r\n{more}content-length: {len(content)}\r\n\r\n"
    return head.encode() + content


def get(path: str, more: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: gateway\r\n{more}\r\n".encode()


@dataclass
class Answer:
    status: int
    head: bytes
    raw: bytes
    """The body with its framing."""
    complete: bool
    """Framed to its end, or ended with the connection where that is its end."""

    def header(self, name: str) -> str | None:
        match = re.search(rb"\r\n" + name.encode() + rb": *([^\r]*)", self.head, re.IGNORECASE)
        return match[1].decode("latin-1") if match else None

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.raw)

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.json["error"]
        return error


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.sock.settimeout(PATIENCE_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""

    def send(self, data: bytes) -> "Client":
        self.sock.sendall(data)
        return self

    def close(self) -> None:
        self.sock.close()

    def read_until(self, mark: bytes) -> bytes:
        while mark not in self._rest:
            if not self._more():
                raise AssertionError(f"{mark!r} never came, only {self._rest!r}")
        return self._rest

    def read_to_end(self) -> bytes:
        """All that comes until the connection is closed."""
        while self._more():
            pass
        return self._rest

    def count_until(self, end: bytes) -> int:
        """Bytes of a body that is too large to be kept; ``end`` is its last ones."""
        _, _, data = self._rest.partition(b"\r\n\r\n")
        count, last = len(data), data[-len(end) :]
        while last != end and (data := self.sock.recv(1 << 16)):
            count, last = count + len(data), (last + data)[-len(end) :]
        self._rest = b""
        return count

    def at_end(self) -> bool:
        """Nothing is left, and the connection is closed."""
        return not self._rest and not self._more()

    def answer(self) -> Answer:
        while b"\r\n\r\n" not in self._rest:
            if not self._more():
                raise AssertionError(f"no answer, only {self._rest!r}")
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        found = Answer(int(head[9:12]), head, b"", complete=True)
        size = found.header("content-length")
        if size is not None:
            found.complete = self._read_size(int(size))
            found.raw, self._rest = self._rest[: int(size)], self._rest[int(size) :]
        elif found.header("transfer-encoding") == "chunked":
            found.complete = self._read_chunks()
            end = self._rest.find(b"0\r\n\r\n") + 5 if found.complete else len(self._rest)
            found.raw, self._rest = self._rest[:end], self._rest[end:]
        else:
            while self._more():
                pass
            found.raw, self._rest = self._rest, b""
        return found

    def _read_size(self, size: int) -> bool:
        while len(self._rest) < size:
            if not self._more():
                return False
        return True

    def _read_chunks(self) -> bool:
        while b"\r\n0\r\n\r\n" not in self._rest and not self._rest.startswith(b"0\r\n\r\n"):
            if not self._more():
                return False
        return True

    def _more(self) -> bool:
        try:
            data = self.sock.recv(1 << 16)
        except ConnectionResetError:
            return False
        self._rest += data
        return bool(data)


class Gateway:
    """Started with a TOML text; it is listening when this returns."""

    def __init__(
        self, folder: Path, toml: str, *, listen: str = "127.0.0.1:0", start: Callable[[str], Forked] = Forked
    ) -> None:
        path = folder / "gateway.toml"
        path.write_text(f'listen = "{listen}"\n' + toml, "utf-8")
        self.process = start(str(path))
        said = self.process.stdout.readline()
        match = re.search(r"http://127\.0\.0\.1:(\d+)", said)
        if match is None:
            raise AssertionError(said + self.process.communicate()[1])
        self.port = int(match[1])
        self._clients: list[Client] = []
        self.told: list[str] = []
        """What it has said of its engines and of what it read again, once it has ended."""

    def client(self) -> Client:
        self._clients.append(Client(self.port))
        return self._clients[-1]

    def ask(self, content: bytes, path: str = CHAT, more: str = "", version: str = "1.1") -> Answer:
        client = self.client()
        answer = client.send(post(content, path, more, version)).answer()
        client.close()
        return answer

    def control(self, method: str, path: str, told: Any = None, **headers: str) -> tuple[int, Any]:
        data = None if told is None else msgspec.json.encode(told)
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data, {"content-type": "application/json", **headers}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, msgspec.json.decode(answer.read())
        except urllib.error.HTTPError as e:
            with e:
                return e.code, msgspec.json.decode(e.read())

    def metrics(self) -> dict[str, float]:
        client = self.client()
        answer = client.send(get("/metrics")).answer()
        client.close()
        lines = (line for line in answer.raw.decode().splitlines() if not line.startswith("#"))
        return {
            name.removeprefix("withstand_gateway_"): float(value)
            for name, _, value in (x.rpartition(" ") for x in lines)
        }

    def until(self, name: str, value: float) -> None:
        """Wait for a metric to be that."""
        end_s = time.monotonic() + PATIENCE_S
        while (seen := self.metrics().get(name)) != value:
            if time.monotonic() > end_s:
                raise AssertionError(f"{name} is {seen}, not {value}")
            time.sleep(0.01)

    def sleeps(self, watched_s: float = 0.5) -> int:
        """How often it gives its core away in that time."""
        before = self._slept()
        time.sleep(watched_s)
        return self._slept() - before

    def _slept(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE)
        assert found is not None
        return int(found[1])

    def threads(self) -> int:
        """How many it has just now."""
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def stop(self) -> str:
        """What it said on stderr, but of its engines' faults and what it read again; one that is well says nothing."""
        for client in self._clients:
            client.close()
        if self.process.poll() is None:
            self.terminate()
        lines = self.process.communicate(timeout=PATIENCE_S)[1].splitlines(keepends=True)
        self.told += [line for line in lines if line.startswith(NO_FAULTS)]
        return "".join(line for line in lines if not line.startswith(NO_FAULTS))


def model(*engines: str, name: str = "m", more: str = "") -> str:
    """The TOML of one model."""
    places = "\n".join(f'[[models.{name}.engines]]\nurl = "{url}"' for url in engines)
    return f"[models.{name}]\n{more}\n{places}\n"
