"""Streams heard by one thread: when each request was sent, each event came, and we left. Sockets, no HTTP library.

Times are monotonic ns, as the truth server's log has them; a request is known again by its ``x-request-id``.
"""

import json
import re
import selectors
import socket
import time
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

_EVENT = re.compile(rb'"content": ?"[^"]')
"""In every event with output, and in no other."""
_END = b"\r\n0\r\n\r\n"


class Heard(NamedTuple):
    """One request."""

    request_id: str
    sent_ns: int
    events_ns: list[int]
    left_ns: int | None
    """When we closed the connection in the middle of the answer."""


class _Stream:
    def __init__(self, url: str, name: str, tokens: int, leave_at: int | None) -> None:
        at = urlsplit(url)
        self._name, self._tokens, self._leave_at, self._host = name, tokens, leave_at, at.netloc
        self.socket = socket.create_connection((at.hostname, at.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._number = 0

    def ask(self) -> None:
        """The next request, on the same connection."""
        self._number += 1
        self.request_id = f"{self._name}-{self._number}"
        body = {"model": "truth", "stream": True, "max_tokens": self._tokens}
        text = json.dumps(body | {"messages": [{"role": "user", "content": "Hello"}]}).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
            f"X-Request-Id: {self.request_id}\r\nContent-Length: {len(text)}\r\n\r\n"
        )
        self.events_ns: list[int] = []
        self._rest, self._tail, self._answered = b"", b"", False
        self.sent_ns = time.monotonic_ns()
        self.socket.sendall(head.encode() + text)

    def hear(self) -> Heard | None:
        """What has come; an answer that is over.

        Raises:
            OSError: it broke off.
        """
        data, now_ns = self.socket.recv(65_536), time.monotonic_ns()
        if not data:
            raise ConnectionError(f"{self.request_id} broke off")
        if not self._answered and not data.startswith(b"HTTP/1.1 200"):
            raise ConnectionError(f"{self.request_id}: {data[:2000].decode('utf-8', 'replace')}")
        self._answered = True
        text = self._rest + data
        keep = text.rfind(b"\n") + 1
        self.events_ns += [now_ns] * len(_EVENT.findall(text[:keep]))
        self._rest = text[keep:]
        self._tail = (self._tail + data)[-len(_END) :]
        if self._leave_at is not None and len(self.events_ns) >= self._leave_at:
            left_ns = time.monotonic_ns()
            self.socket.close()
            return Heard(self.request_id, self.sent_ns, self.events_ns, left_ns)
        return Heard(self.request_id, self.sent_ns, self.events_ns, None) if self._tail == _END else None


def streams(
    url: str, count: int, *, tokens: int, seconds: float, leave_at: int | None = None, name: str = "s"
) -> Iterator[Heard]:
    """``count`` at once, each asked again when it is over, none after ``seconds``; or left in the middle, once."""
    looker = selectors.DefaultSelector()
    begun_ns = time.monotonic_ns()
    for i in range(count):
        stream = _Stream(url, f"{name}{i}", tokens, leave_at)
        looker.register(stream.socket, selectors.EVENT_READ, stream)
        stream.ask()
        next_s = time.monotonic() + 0.4 / count  # their tokens are not due at one instant
        while (wait_s := next_s - time.monotonic()) > 0:
            yield from _heard(looker, wait_s, begun_ns + int(seconds * 1e9))
    while looker.get_map():
        yield from _heard(looker, None, begun_ns + int(seconds * 1e9))


def _heard(looker: selectors.BaseSelector, wait_s: float | None, end_ns: int) -> Iterator[Heard]:
    """What is over among what came."""
    for key, _ in looker.select(wait_s):
        stream = key.data
        before = stream.socket.fileno()
        heard = stream.hear()
        if heard is None:
            continue
        yield heard
        if heard.left_ns is None and time.monotonic_ns() < end_ns:
            stream.ask()
            continue
        looker.unregister(before if heard.left_ns else stream.socket)
        stream.socket.close()
