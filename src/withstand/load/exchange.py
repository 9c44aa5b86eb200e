"""One request on its way and its answer as it comes: the facts that will be a Record."""

import email.utils
from collections.abc import Callable

import msgspec

from withstand import clock
from withstand.load.http import Answer
from withstand.load.pacing import Due
from withstand.load.shortway import ShortWay
from withstand.record import Clock, Record, Status, Step
from withstand.wire import Dialect, Reply, StreamReader, WholeReader
from withstand.wire.openai_common import error_text
from withstand.wire.reply import HEAD_CHARS, one_line
from withstand.workload.expected import agrees

_ERROR_BODY_BYTES = 65536
_SECONDS_DIGITS_MAX = 9
_TIMING_CHARS = 500


class Exchange:
    """Mutable; belongs to one connection at a time. ``ended`` is called once, with the exchange."""

    __slots__ = (
        "_asked_stream",
        "_dialect",
        "_keep_text",
        "_reader",
        "_short_way",
        "_whole_bytes",
        "alone",
        "answer",
        "due",
        "end_ns",
        "ended",
        "error",
        "first_byte_ns",
        "kernel_stamped",
        "payload",
        "reply",
        "retries",
        "reused",
        "sent_ns",
        "stamp_ns",
        "started_ns",
        "status",
        "streamed",
    )

    def __init__(
        self,
        due: Due,
        *,
        dialect: Dialect,
        stream: bool,
        ended: "Callable[[Exchange], None]",
        keep_text: bool = False,
    ) -> None:
        self.due = due
        self._keep_text = keep_text or not due.request.last_turn or bool(due.request.expected)
        self.payload = b""
        self.ended = ended
        self._dialect = dialect
        self._asked_stream = stream
        self.retries = 0
        self.started_ns: int | None = None
        self.reused: bool | None = None
        self.kernel_stamped = True
        self.status: Status | None = None
        self.error: str | None = None
        self._begin()

    def restart(self) -> None:
        """As if nothing had been sent: once more, over a fresh connection."""
        self.answer.release()
        self._begin()

    def _begin(self) -> None:
        self.reply = Reply(keep_text=self._keep_text)
        self.answer = Answer(self._on_head, self._on_body)
        self.streamed = self._asked_stream
        self.sent_ns: int | None = None
        self.first_byte_ns: int | None = None
        self.end_ns: int | None = None
        self.stamp_ns = 0
        self.alone = False
        """Whether what was fed last was one chunk of the body and nothing else: the server wrote it in one piece."""
        self._whole_bytes: bytearray | None = None
        self._reader: StreamReader | None = None
        self._short_way: ShortWay | None = None

    def feed(self, data: bytes, stamp_ns: int) -> int:
        """Bytes of the answer, stamped; how many events with output they have completed.

        Raises:
            HttpError: they are no HTTP.
        """
        self.stamp_ns = stamp_ns
        chunk_ns = self.reply.chunk_ns
        before = len(chunk_ns)
        answer = self.answer
        began_between, chunks, begun = answer.between_chunks, answer.chunks, answer.begun
        answer.feed(data)
        if answer.begun != begun:
            self.first_byte_ns = stamp_ns
        in_one = began_between and answer.between_chunks and answer.chunks == chunks + 1
        self.alone = in_one and not answer.complete
        events = len(chunk_ns) - before
        if events == 1 and self.alone and self._short_way is not None and self._pending_nothing:
            self._short_way.learn(data, self._dialect.stream_reader)
        return events

    @property
    def ends_here(self) -> bool:
        """Whether nothing has come behind what was fed last, as far as the framing tells."""
        return not self.answer.complete and (self.answer.between_chunks or not self.answer.chunks)

    @property
    def short_way(self) -> ShortWay | None:
        """Who may be given the next read first; None = it goes on with something, or no short way leads there."""
        return self._short_way if self.answer.between_chunks and self._pending_nothing else None

    @property
    def _pending_nothing(self) -> bool:
        return self._reader is not None and self._reader.idle

    @property
    def last_byte_ns(self) -> int | None:
        """The stamp of the last read, whichever way it took; None before the first."""
        return max((self.stamp_ns, *self.reply.chunk_ns[-1:])) if self.stamp_ns else None

    def _on_head(self) -> None:
        """The status line and headers decide who reads the body."""
        answer = self.answer
        status = answer.status or 0
        if status >= 300 or "html" in answer.content_type:
            self._whole_bytes = bytearray()
        elif "json" in answer.content_type and "event-stream" not in answer.content_type:
            self.streamed = False
            self._reader = WholeReader(self.reply, self._dialect.read_whole)
        elif self._asked_stream:
            self._reader = self._dialect.stream_reader(self.reply)
            self._short_way = ShortWay(self.reply)
        else:
            self._reader = WholeReader(self.reply, self._dialect.read_whole)

    def _on_body(self, data: bytes) -> None:
        if self._reader is not None:
            before = len(self.reply.chunk_ns)
            self.reply.trailed = False
            self._reader.feed(data, self.stamp_ns)
            self.reply.trailed |= len(self.reply.chunk_ns) == before
        elif self._whole_bytes is not None and len(self._whole_bytes) < _ERROR_BODY_BYTES:
            self._whole_bytes += data

    def complete(self, now_ns: int) -> None:
        """The HTTP message has ended as it should: judge it."""
        if self._reader is not None:
            self._reader.close(self.stamp_ns)
            self._check_kind()
            self.settle(*self.reply.verdict(), now_ns)
        else:
            self.settle(*self._refusal(), now_ns)

    def _check_kind(self) -> None:
        """A body without a single event, under another content type than a stream's, is no answer at all."""
        kind = self.answer.content_type
        said_nothing = not self.reply.chunk_ns and not self.reply.done and not self.reply.finish_reason
        if self.streamed and said_nothing and "event-stream" not in kind:
            self.reply.fail(Status.BAD_ANSWER, f"Answered with {kind or 'no content type'}, not with an event stream")

    def _refusal(self) -> tuple[Status, str]:
        """What an answer that is no model's says."""
        answer, body = self.answer, bytes(self._whole_bytes or b"")
        status = answer.status or 0
        text = "an HTML page" if "html" in answer.content_type else error_text(body)
        told = f"HTTP {status}" + (f": {text[:250]}" if text else "")
        if status == 429:
            return Status.LIMITED, told
        if status >= 400:
            return Status.HTTP_ERROR, told
        if answer.is_redirect():
            return Status.BAD_ANSWER, f"HTTP {status}: redirected to {answer.headers.get('location', 'nowhere')}"
        return Status.BAD_ANSWER, told

    def broken(self, status: Status, error: str, now_ns: int) -> None:
        """The connection ended, or we ended it, before the answer did. What was said whole before counts."""
        if self.reply.fault or self.reply.done:
            self.settle(*self.reply.verdict(), now_ns)
        else:
            self.settle(status, error, now_ns)

    def settle(self, status: Status, error: str | None, now_ns: int) -> None:
        """The end; nothing is changed after it."""
        if self.status is not None:
            return
        self.status, self.error = status, one_line(error) if error else None
        self.end_ns = self.last_byte_ns if self.last_byte_ns is not None else now_ns
        if status in {Status.TIMEOUT, Status.CANCELLED, Status.NOT_SENT}:
            self.end_ns = now_ns
        self.ended(self)

    def record(self, *, stage: int, worker: int, origin_ns: int, epoch_ns: int) -> Record:
        """The facts. ``origin_ns`` = the stage's start, ``epoch_ns`` = the run's, both monotonic."""
        request, reply = self.due.request, self.reply
        shift_ns = origin_ns - epoch_ns
        output_tokens, tokens_from = reply.counted() if self.streamed or reply.output_tokens else (None, None)
        return Record(
            id=request.id,
            stage=stage,
            worker=worker,
            session=request.session,
            turn=request.turn,
            status=self.status or Status.CANCELLED,
            scheduled_ns=_plus(self.due.scheduled_ns, shift_ns),
            ready_ns=self.due.ready_ns + shift_ns,
            started_ns=_plus(self.started_ns, -epoch_ns),
            sent_ns=_plus(self.sent_ns, -epoch_ns),
            first_byte_ns=_plus(self.first_byte_ns, -epoch_ns),
            chunk_ns=[t - epoch_ns for t in reply.chunk_ns],
            unsure=reply.unsure,
            unsure_since_ns=[t - epoch_ns for t in reply.unsure_since_ns],
            chunk_tokens=reply.chunk_tokens,
            end_ns=_plus(self.end_ns, -epoch_ns),
            prompt_tokens=reply.prompt_tokens if reply.prompt_tokens is not None else request.prompt_tokens,
            output_tokens=output_tokens,
            cached_tokens=reply.cached_tokens,
            reasoning_tokens=reply.reasoning_tokens,
            reasoning_events=reply.reasoning_events,
            tokens_from=tokens_from,
            requested_output_tokens=request.output_tokens,
            finish_reason=one_line(reply.finish_reason) if reply.finish_reason else None,
            http_status=self.answer.status,
            error=self.error,
            retry_after_s=_retry_after_s(self.answer.headers.get("retry-after")),
            server_timing=_line(self._server_timing()),
            prefill_ns=reply.prefill_ns,
            retries=self.retries,
            reused=self.reused,
            streamed=self.streamed,
            steps=[_shifted(step, -epoch_ns) for step in reply.steps],
            correct=self._is_correct(),
            clock=Clock.KERNEL if self.kernel_stamped and self.first_byte_ns is not None else Clock.USER,
            text_head=one_line(reply.head, HEAD_CHARS) or None,
        )

    def _server_timing(self) -> str | None:
        """Of the head, and what an agent told behind its answer."""
        told = (self.answer.headers.get("server-timing"), self.reply.server_timing)
        return ", ".join(filter(None, told)) or None

    def _is_correct(self) -> bool | None:
        expected = self.due.request.expected
        return None if not expected else self.status is Status.OK and agrees(self.reply.last_words(), expected)


def _shifted(step: Step, shift_ns: int) -> Step:
    return msgspec.structs.replace(step, at_ns=_plus(step.at_ns, shift_ns)) if step.at_ns is not None else step


def _line(value: str | None) -> str | None:
    return one_line(value, _TIMING_CHARS) if value else None


def _plus(value_ns: int | None, shift_ns: int) -> int | None:
    return None if value_ns is None else value_ns + shift_ns


def _retry_after_s(value: str | None) -> float | None:
    """Retry-After is a number of seconds or a date."""
    if not value:
        return None
    if value.strip().isdecimal():
        return float(value) if len(value.strip()) <= _SECONDS_DIGITS_MAX else None
    try:
        wall_s = email.utils.parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, wall_s - clock.wall_s())
