"""One way to a model, asked one request at a time, over the same transport as every measurement.

Each read keeps its stamp, so that how an answer came can be judged later. It knows no judgement.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from withstand import clock
from withstand.app.endpoint import Endpoint
from withstand.doctor.heard import Heard, Read
from withstand.errors import TargetError
from withstand.load.exchange import Exchange
from withstand.load.http import request_head, with_body
from withstand.load.loop import Loop
from withstand.load.masking import Mask
from withstand.load.pacing import Due
from withstand.load.selfcheck import SelfCheck
from withstand.load.transport import Transport
from withstand.metrics.rounding import counted
from withstand.record import Status
from withstand.request import Request
from withstand.spec import Timeouts
from withstand.wire import Dialect

_TURN_NS = 20_000_000
_HEAD_BYTES = 16
_LIMITED = 429
COUNTING = "Count from 1 to 1000 in figures, separated by blanks, and say nothing else."


def _unheard() -> None:
    """Nobody listens."""


class LimitedError(TargetError):
    """Whoever limits us has answered, and nobody else: what is heard from now on says nothing of the path."""


class TimeUpError(TargetError):
    """The time that the examination may take is over; what was being asked is left out."""


class Listening(Exchange):
    """An exchange that keeps all of its reads."""

    __slots__ = ("head", "reads")

    def __init__(self, dialect: Dialect, payload: bytes, *, stream: bool) -> None:
        due = Due(Request(id=0, session=0, messages=()), None, 0)
        self.reads: list[Read] = []
        self.head = b""
        super().__init__(due, dialect=dialect, stream=stream, ended=lambda _: None, keep_text=True)
        self.payload = payload

    def restart(self) -> None:
        """As if nothing had been sent."""
        self.reads, self.head = [], b""
        super().restart()

    def feed(self, data: bytes, stamp_ns: int) -> int:
        """Bytes of the answer, kept with their stamp."""
        if len(self.head) < _HEAD_BYTES:
            self.head += data[:_HEAD_BYTES]
        events = super().feed(data, stamp_ns)
        self.reads.append(Read(stamp_ns, len(data), events, self._pending_nothing))
        return events

    @property
    def short_way(self) -> None:
        """None leads there: every read is to be seen."""
        return

    def heard(self, mask: Mask, left_ns: int | None) -> Heard:
        """What it came to."""
        reply, answer = self.reply, self.answer
        assert self.status is not None
        return Heard(
            status=self.status,
            error=mask(self.error) if self.error else None,
            http_status=answer.status,
            version=self.head[5:8].decode("latin-1"),
            headers={name: mask(value) for name, value in answer.headers.items()},
            sent_ns=self.sent_ns,
            events_ns=tuple(reply.chunk_ns),
            end_ns=self.end_ns,
            left_ns=left_ns,
            reads=tuple(self.reads),
            text=mask(reply.answer()),
            finish_reason=reply.finish_reason,
            usage_tokens=reply.output_tokens,
            prompt_tokens=reply.prompt_tokens,
            streamed=self.streamed,
            done=reply.done,
            keep_alive=answer.keep_alive,
            reused=self.reused,
        )


Leave = Callable[[Listening], bool]
"""Whether it is time to close the connection in the middle of an answer."""


class Line:
    """One endpoint. ``asked`` counts its requests."""

    def __init__(self, endpoint: Endpoint, *, model: str | None = None, patience_s: float | None = None) -> None:
        self.endpoint = endpoint
        self.model = model or endpoint.model
        self.length_field = "max_completion_tokens" if self.is_chat else "max_tokens"
        self.asked = 0
        self.asking: Callable[[], None] = _unheard
        """Called before each request."""
        self.until_ns: int | None = None
        """When it is time to ask no more; None = never."""
        self.endless_fails: str | None = None
        """Why requests fail that have ``ignore_eos``, and not without it; None = they do not, as far as is known."""
        self._endless_is_known = False
        timeouts = endpoint.route.timeouts
        if patience_s is not None:
            timeouts = Timeouts(connect_s=timeouts.connect_s, read_s=patience_s, total_s=patience_s)
        self._route = msgspec.structs.replace(endpoint.route, timeouts=timeouts)
        self._mask = Mask(endpoint.secrets)
        self._loop = Loop(0)
        self._transport = Transport(self._route, self._loop, SelfCheck(0))

    @property
    def is_chat(self) -> bool:
        """Which of the two dialects it is asked in."""
        return self.endpoint.target.backend == "openai-chat"

    def body(self, *, stream: bool, tokens: int | None, prompt: str = COUNTING, **fields: Any) -> dict[str, Any]:
        """A request's body; ``tokens`` None = no limit is asked for."""
        told: dict[str, Any] = {"model": self.model}
        told |= {"messages": [{"role": "user", "content": prompt}]} if self.is_chat else {"prompt": prompt}
        told["stream"] = stream
        if stream:
            told["stream_options"] = {"include_usage": True}
        if tokens is not None:
            told[self.length_field] = tokens
        return told | fields

    def ask(
        self,
        body: Mapping[str, Any] | bytes,
        *,
        stream: bool = True,
        headers: Mapping[str, str] | None = None,
        leave: Leave | None = None,
        limits: bool = False,
    ) -> Heard:
        """One request, to its end or until we leave. ``headers`` None = the endpoint's.

        Raises:
            LimitedError: a 429 came, and the caller does not ask for ``limits``.
            TimeUpError: it is time to ask no more.
        """
        self.heed_time()
        self.asked += 1
        self.asking()
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        address = self.endpoint.address
        head = request_head("POST", self.endpoint.completions, address.host_header, headers or self.endpoint.headers)
        exchange = Listening(self.endpoint.dialect, with_body(head, data), stream=stream)
        self._transport.send(exchange)
        left_ns = None
        while exchange.status is None:
            self._loop.turn(_TURN_NS / 1e9, clock.now_ns() + _TURN_NS)
            self._transport.sweep(clock.now_ns())
            self.heed_time()
            if leave is not None and exchange.status is None and leave(exchange):
                left_ns = self._leave()
        heard = exchange.heard(self._mask, left_ns)
        exchange.answer.release()
        if heard.http_status == _LIMITED and not limits:
            raise self.limited(heard)
        return heard

    def ask_long(self, *, stream: bool, tokens: int | None, leave: Leave | None = None, **fields: Any) -> Heard:
        """A request whose answer is not to end before its length, by ``ignore_eos`` unless requests fail with it.

        A failure is laid to that field where two requests fail with it, and the same without it in between does not.
        """

        def ask(**endless: Any) -> Heard:
            body = self.body(stream=stream, tokens=tokens, **endless, **fields)
            return self.ask(body, stream=stream, leave=leave)

        if self.endless_fails:
            return ask()
        heard = ask(ignore_eos=True)
        if heard.ok or heard.left_ns is not None or self._endless_is_known:
            return heard
        without = ask()
        self._endless_is_known = not without.ok  # it is not for this field that nothing works
        if without.ok and not (again := ask(ignore_eos=True)).ok:
            self.endless_fails = again.why
        return without if without.ok else heard

    def heed_time(self) -> None:
        """Leave what is being asked when its time is over.

        Raises:
            TimeUpError: it is.
        """
        if self.until_ns is not None and clock.now_ns() > self.until_ns:
            self.hang_up()
            url = self.endpoint.target.base_url
            raise TimeUpError(f"{url} was too slow for the time that the examination has; give more by --seconds.")

    def limited(self, heard: Heard) -> LimitedError:
        """What to say of an answer that is a limit's."""
        url, asked = self.endpoint.target.base_url, counted(self.asked, "request")
        return LimitedError(
            f"A limit of {url} stopped the examination after {asked} ({heard.why[:160]}). "
            "Ask with a key that has none, or raise it meanwhile: some 35 requests go out, one behind the other; "
            "with --direct or --echo some 120."
        )

    def _leave(self) -> int:
        """Close every connection; the instant before."""
        left_ns = clock.now_ns()
        self.hang_up()
        return left_ns

    def hang_up(self) -> None:
        """Close every connection: the next request dials."""
        self._transport.cancel_all()
        self._loop.turn(0, clock.now_ns())  # it is in this that they are closed

    def good(self, body: Mapping[str, Any], *, stream: bool = True) -> Heard | None:
        """The same; None = it was no success."""
        heard = self.ask(body, stream=stream)
        return heard if heard.status is Status.OK else None

    def close(self) -> None:
        """Give everything back."""
        self.hang_up()
        self._transport.stamps.close()
        self._loop.close()
