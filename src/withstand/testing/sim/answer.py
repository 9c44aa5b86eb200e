"""One simulated answer on its way to a client: it is told of each token, and writes what the truth server would."""

import msgspec

from withstand.sim import Job
from withstand.testing.truth.asked import Asked
from withstand.testing.truth.connection import Connection
from withstand.testing.truth.framed import Head
from withstand.testing.truth.score import End, Score, Write, wrapped
from withstand.testing.truth.served import Entry
from withstand.testing.truth.style import Style
from withstand.testing.truth.voice import Voice

_STYLE = Style()


class Answer:
    """``begin`` at once, ``say`` for each token. What the client does not read waits in its connection."""

    def __init__(self, job: Job, asked: Asked, connection: Connection, handle: dict[str, object] | None) -> None:
        self.job = job
        self.alive = True
        self.exhausted = False
        self.entry: Entry | None = None
        self.score = Score(200, iter(()), End.KEEP if asked.keep_alive else End.CLOSE)
        self._asked = asked
        self._connection = connection
        self._handle = handle
        self._voice = Voice(asked, _STYLE)

    def stop(self) -> None:
        """Nobody listens any more."""
        self.alive = False

    def begin(self) -> None:
        """A stream's head goes out at once, as vLLM's does."""
        if self._asked.stream:
            self._put(self._head("text/event-stream; charset=utf-8").write("Transfer-Encoding: chunked"))

    def say(self) -> None:
        """One more token has been computed."""
        if self.alive and self._asked.stream:
            self._stream(self.job.said - 1)
        if self.alive and self.job.said == self.job.output_tokens:
            self._end()

    def _stream(self, index: int) -> None:
        events = [self._voice.said(index, 1)]
        if index == 0 and self._asked.chat:
            events.insert(0, self._voice.role())
        self._put_events(events)

    def _end(self) -> None:
        self._know_cached()
        if self._asked.stream:
            usage = self._voice.usage()
            self._put_events([*([usage] if usage else []), b"[DONE]"])
            self._put(Write(0, b"0\r\n\r\n"))
        else:
            body = self._with_handle(self._voice.whole())
            head = self._head("application/json").write(f"Content-Length: {len(body)}")
            self._put(Write(0, head.data + body))
        self.exhausted = True
        self._connection.conclude()

    def _know_cached(self) -> None:
        self._voice = Voice(msgspec.structs.replace(self._asked, cached_tokens=self.job.cached_tokens or 0), _STYLE)

    def _with_handle(self, body: bytes) -> bytes:
        if self._handle is None:
            return body
        return msgspec.json.encode(msgspec.json.decode(body) | {"kv_transfer_params": self._handle})

    def _head(self, kind: str) -> Head:
        return Head(200, kind, (), self._asked.keep_alive)

    def _put_events(self, events: list[bytes]) -> None:
        data = b"".join(b"data: %b\n\n" % event for event in events)
        self._put(wrapped(Write(0, data), b"%x\r\n" % len(data), b"\r\n"))

    def _put(self, write: Write) -> None:
        if self.alive:
            self._connection.put(write, None)
