"""Joins plan and transport: reads requests ahead, sends what is due, writes a record for whatever has ended."""

from pathlib import Path

import msgspec

from withstand import clock, plugins
from withstand.load.exchange import Exchange
from withstand.load.http import request_head, with_body
from withstand.load.job import Job, Report
from withstand.load.masking import Mask
from withstand.load.pacing import Dispatcher, Due
from withstand.load.sink import RecordSink
from withstand.load.spool import SpoolReader
from withstand.load.texts import TextSink
from withstand.load.transport import Transport
from withstand.record import OUR_DOING, Record, Status
from withstand.request import Message, Request
from withstand.wire import Dialect

_AHEAD_REQUESTS = 256
_AHEAD_ENOUGH = 64
_AT_ONCE_BYTES = 128 << 10
_AHEAD_BYTES = 32 << 20
_BURST = 32


class Sender:
    """One stage's stripe. Times of the plan are ns since ``start_ns``, which is monotonic."""

    def __init__(self, job: Job, transport: Transport) -> None:
        self._job = job
        self._transport = transport
        self._dialect: Dialect = plugins.load("wire", job.dialect, "target.backend / --backend")
        self._head = request_head("POST", job.endpoint, job.address.host_header, job.headers)
        self._dispatcher = Dispatcher(cap=job.cap, closed=job.closed, end_ns=job.duration_ns)
        self._spool = SpoolReader(job.spool_path)
        self._sink = RecordSink(job.records_path)
        self._texts = TextSink(Path(job.texts), job.text_share) if job.texts else None
        self._mask = Mask(job.secrets)
        self._session: list[Request] = []
        self._payloads: dict[int, bytes] = {}
        self._payload_bytes = 0
        self._history: dict[int, list[Message]] = {}
        self._drain_until_ns: int | None = None
        self._unheard_since_ns: int | None = None
        self.start_ns = 0
        self.in_flight = 0
        self.stirred = False
        """Something has changed that ``dispatch`` and ``over`` should be asked again for; the asker sets it back."""
        self.has_turns = False
        """Some requests are due when others have ended."""
        self._taken = self._sent = self._done = self._failed = self._output_tokens = 0

    # Reading ahead.

    @property
    def hungry(self) -> bool:
        """Whether there is room to read ahead, and something may come."""
        return not self._spool.ended and self._dispatcher.ahead < _AHEAD_REQUESTS and self._payload_bytes < _AHEAD_BYTES

    def feed(self) -> None:
        """Read ahead a little, for what is due waits meanwhile; where hardly anything is ahead, a little more."""
        enough_bytes = self._spool.bytes_read + _AT_ONCE_BYTES
        while self._read_some() and self.hungry and self._dispatcher.ahead < _AHEAD_ENOUGH:
            if self._spool.bytes_read >= enough_bytes:
                return

    def _read_some(self) -> bool:
        """Put some requests into bytes; whether there were any. A session is offered when all of it is here."""
        some = False
        for request in self._spool.read():
            some = True
            self._session.append(request)
            if request.last_turn:
                self._offer_session()
        return some

    def _offer_session(self) -> None:
        first = self._session[0]
        self.has_turns |= not first.last_turn
        payload = self._encode(first)
        self._payloads[first.id] = payload
        self._payload_bytes += len(payload)
        for request in self._session:
            self._dispatcher.offer(request)
        self._session.clear()

    def feed_up(self, until_ns: int) -> None:
        """Read ahead as much as there is room and time for, before the start."""
        while self.hungry and clock.now_ns() < until_ns and self._read_some():
            pass

    def _encode(self, request: Request) -> bytes:
        history = self._history.get(request.session, ())
        return with_body(self._head, self._dialect.encode(request, history, self._job.ask))

    # Sending.

    def dispatch(self, now_ns: int) -> bool:
        """Send what is due, at most a burst of it; whether more may be due."""
        for _ in range(_BURST):
            due = self._dispatcher.take(now_ns - self.start_ns)
            if due is None:
                return False
            self._send(due)
        return True

    def _send(self, due: Due) -> None:
        request = due.request
        exchange = self._exchange(due)
        exchange.started_ns = clock.now_ns()
        payload = self._payloads.pop(request.id, None)
        if payload is None:
            payload = self._encode(request)
        else:
            self._payload_bytes -= len(payload)
        exchange.payload = payload
        self._taken += request.turn == 0
        self._sent += 1
        self.in_flight += 1
        self._transport.send(exchange)

    def _exchange(self, due: Due) -> Exchange:
        return Exchange(
            due,
            dialect=self._dialect,
            stream=self._job.ask.stream,
            ended=self._ended,
            keep_text=self._wants_text(due.request.id),
        )

    def _wants_text(self, answer: int) -> bool:
        return self._texts is not None and self._texts.wants(answer)

    def wake_ns(self) -> int | None:
        """The monotonic instant of the next planned send; None = an answer must end first."""
        wake_ns = self._dispatcher.wake_ns()
        return None if wake_ns is None else wake_ns + self.start_ns

    # Ending.

    def _ended(self, exchange: Exchange) -> None:
        request, ok = exchange.due.request, exchange.status is Status.OK
        self.stirred = True
        self.in_flight -= 1
        self._done += 1
        self._failed += not ok
        self._remember(request, exchange, ok=ok)
        self._output_tokens += self._write(exchange) or 0
        now_ns = clock.now_ns() - self.start_ns
        unheard_ns = self._unheard_ns(exchange, now_ns)
        for dropped in self._dispatcher.finished(request, now_ns, ok=ok, unheard_ns=unheard_ns):
            self._never_sent(Due(dropped, None, now_ns), "The turn before it failed")

    def _unheard_ns(self, exchange: Exchange, now_ns: int) -> int | None:
        """When it was begun, where no byte has come; it is noted since when that is so of all."""
        if exchange.status in OUR_DOING or exchange.started_ns is None:
            return None
        if exchange.first_byte_ns is not None:
            self._unheard_since_ns = None
            return None
        if self._unheard_since_ns is None:
            self._unheard_since_ns = now_ns
        return exchange.started_ns - self.start_ns

    def _remember(self, request: Request, exchange: Exchange, *, ok: bool) -> None:
        if request.last_turn or not ok:
            self._history.pop(request.session, None)
        else:
            answer = Message(role="assistant", content=exchange.reply.answer())
            self._history.setdefault(request.session, []).extend((*request.messages, answer))

    def _write(self, exchange: Exchange) -> int | None:
        """One record on file; its output tokens."""
        job = self._job
        record = exchange.record(stage=job.stage, worker=job.worker, origin_ns=self.start_ns, epoch_ns=job.epoch_ns)
        self._sink.append(self._masked(record))
        if self._texts and record.status is Status.OK and self._texts.wants(record.id):
            self._texts.append(record.id, self._mask(exchange.reply.answer()))
        exchange.answer.release()
        return record.output_tokens

    def _masked(self, record: Record) -> Record:
        if record.error is None and not self._job.secrets:
            return record
        told = {name: getattr(record, name) for name in ("error", "text_head", "finish_reason")}
        masked = {name: self._mask(text) for name, text in told.items() if text is not None}
        return msgspec.structs.replace(record, **masked)

    def _never_sent(self, due: Due, why: str) -> None:
        exchange = self._exchange(due)
        exchange.ended = lambda _: None
        exchange.settle(Status.NOT_SENT, why, clock.now_ns())
        self._failed += 1
        self._write(exchange)

    def over(self, now_ns: int) -> bool:
        """Whether the stage is done; what outlives the drain is cancelled."""
        since_start_ns = now_ns - self.start_ns
        if not self._dispatcher.ended(since_start_ns):
            return self._spool.ended and self._dispatcher.idle and not self.in_flight
        if self._drain_until_ns is None:
            self._drain_until_ns = now_ns + self._job.drain_ns
        if self.in_flight and now_ns >= self._drain_until_ns:
            self._transport.cancel_all()
        return not self.in_flight

    def drain(self, now_ns: int) -> None:
        """Send nothing more."""
        self.stirred = True
        self._dispatcher.stop(now_ns - self.start_ns)

    def stop(self, now_ns: int) -> None:
        """End what runs."""
        self.drain(now_ns)
        self._transport.cancel_all()

    def close(self, now_ns: int) -> None:
        """Write down what was due and could not be sent."""
        if not self._job.closed:
            self._read_up_to(now_ns - self.start_ns)
        for due in self._dispatcher.leftover(now_ns - self.start_ns):
            self._never_sent(due, "The stage ended before a slot was free for it")
        self._sink.close()
        self._spool.close()
        if self._texts:
            self._texts.close()

    def _read_up_to(self, since_start_ns: int) -> None:
        """What was due by then and not yet read ahead; the plan is in the order of its times."""
        batch = self._session
        while batch or (batch := list(self._spool.read())):
            for request in batch:
                self._dispatcher.offer(request)
            if max(request.due_ns or 0 for request in batch) > since_start_ns:
                return
            batch = []

    def report(self) -> Report:
        """How far it is."""
        return Report(
            taken=self._taken,
            sent=self._sent,
            done=self._done,
            failed=self._failed,
            in_flight=self.in_flight,
            output_tokens=self._output_tokens,
            unheard_ns=self._unheard_for_ns(),
        )

    def _unheard_for_ns(self) -> int:
        if self._unheard_since_ns is None:
            return 0
        if self._transport.hears:
            self._unheard_since_ns = None
            return 0
        return clock.now_ns() - self.start_ns - self._unheard_since_ns

    @property
    def counts(self) -> tuple[int, int]:
        """(Sent, ended)."""
        return self._sent, self._done
