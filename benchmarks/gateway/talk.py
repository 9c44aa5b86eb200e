"""One request by hand, over a socket of its own: for probes that must know when they leave, and how an answer ends."""

import json
import re
import socket
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from benchmarks.gateway.gateways import MODEL, Running

from withstand import clock

_TOKEN: Final = re.compile(rb'"content": ?"\d{19}')
_READ_BYTES: Final = 1 << 16
_LOOK_S: Final = 0.002


class Talk:
    """A context; ``bytes`` is what came so far, and ``ended`` how, where it did."""

    def __init__(self, gateway: Running, *, stream: bool = True, tokens: int = 500, **fields: Any) -> None:
        told = {"model": MODEL, "stream": stream, "max_tokens": tokens, **fields}
        told.setdefault("messages", [{"role": "user", "content": "hi"}])
        body = json.dumps(told).encode()
        header = f"{gateway.header}\r\n" if gateway.header else ""
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\n"
            f"Content-Type: application/json\r\n{header}Content-Length: {len(body)}\r\n\r\n"
        )
        self.bytes = b""
        self.ended: str | None = None
        self._socket = socket.create_connection(("127.0.0.1", gateway.port), 5)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent_ns = clock.now_ns()
        self._socket.sendall(head.encode() + body)

    @property
    def status(self) -> int:
        """0 = none yet."""
        return int(self.bytes[9:12]) if len(self.bytes) > 12 else 0

    @property
    def tokens(self) -> int:
        """That came."""
        return len(_TOKEN.findall(self.bytes))

    def read(self, until: Callable[[Self], bool], within_s: float) -> float:
        """Until that holds, the answer is over, or the time is; the seconds that it took."""
        began_s = time.monotonic()
        while not (until(self) or self.ended or self._is_whole()):
            left_s = began_s + within_s - time.monotonic()
            if left_s <= 0:
                self.ended = "still open"
                break
            self._socket.settimeout(left_s)
            self._read_once()
        return time.monotonic() - began_s

    def _read_once(self) -> None:
        try:
            more = self._socket.recv(_READ_BYTES)
        except TimeoutError:
            return
        except OSError:
            self.ended = "reset"
            return
        self.bytes += more
        if not more:
            self.ended = "closed"

    def _is_whole(self) -> bool:
        head, _, body = self.bytes.partition(b"\r\n\r\n")
        head = head.lower()
        if b"transfer-encoding: chunked" in head:
            return body.endswith(b"0\r\n\r\n")
        said = re.search(rb"content-length: *(\d+)", head)
        return said is not None and len(body) >= int(said[1])

    def leave(self) -> int:
        """Close; the instant before, ns."""
        at_ns = clock.now_ns()
        self._socket.close()
        return at_ns

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self._socket.close()


def never(_: Talk) -> bool:
    """Read to the end."""
    return False


def await_that(holds: Callable[[], bool], within_s: float) -> bool:
    """Look until it does; whether it did."""
    end_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > end_s:
            return False
        time.sleep(_LOOK_S)
    return True
