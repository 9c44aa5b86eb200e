"""One request's way to an engine and its answer's way back, whatever happens to either side.

Until an answer has begun for the client another engine may be asked; from then on nothing is tried again.
An engine's load counts from the choice of it until ``_leave``, which every ending goes through.
"""

import asyncio
import errno
from typing import TYPE_CHECKING, cast

from withstand import clock
from withstand.gateway import asked, heads, refusals, tap
from withstand.gateway.counts import Ending, Outcome
from withstand.gateway.deadlines import NEVER, Deadlines
from withstand.gateway.delivery import Delivery
from withstand.gateway.incoming import Incoming, request_id
from withstand.gateway.keys import Key
from withstand.gateway.refusals import Refusal
from withstand.gateway.routes import Route
from withstand.gateway.stopwatch import Stopwatch
from withstand.gateway.waiting import Ticket

if TYPE_CHECKING:
    from withstand.gateway.door import Door
    from withstand.gateway.engine import Engine, Seat
    from withstand.gateway.house import House
    from withstand.gateway.link import Link
    from withstand.gateway.policies import Choose
    from withstand.gateway.roster import Model

_PASSED_OVER = frozenset((429, 502, 503))
"""Answers that say "not here, not now": another engine may do better."""
_NO_DESCRIPTORS = frozenset((errno.EMFILE, errno.ENFILE))
_RETRY_AFTER_S = 5


class Passage:
    """Made when a request is complete; ``start`` it, and the door hears of its end."""

    def __init__(self, house: "House", door: "Door", incoming: Incoming, route: Route) -> None:
        self._house = house
        self._door = door
        self._incoming = incoming
        self._route = route
        self._id = request_id(incoming.header(b"x-request-id"))
        self._timeouts = house.timeouts[route.path]
        self._deadlines = Deadlines(self._timeouts, house.now_s())
        self._watch = Stopwatch(incoming.read_ns)
        self._body = self._outgoing = incoming.body
        self._named = ""
        """The model, as the client calls it."""
        self._key: Key | None = None
        self._model = cast("Model", None)
        self._choose: Choose | None = None
        """How the model's policy chooses for this request; None once nobody else will be asked."""
        self._tried: list[Seat] = []
        self._engine: Engine | None = None
        self._link: Link | None = None
        self._dialing: asyncio.Task[None] | None = None
        self._ticket: Ticket | None = None
        """Its place in the waiting room."""
        self._delivery = Delivery(door.write, route.dialect, old=incoming.version == "1.0")
        self._comment_s = NEVER
        """When the client is to hear that it has not been forgotten."""
        self._paused = False

    # The way there.

    def start(self) -> None:
        """Find out who is to answer, and send it there."""
        refusal = self._not_admitted()
        if refusal is None:
            self._house.passages.add(self)
            if self._model.room:
                self._wait()  # behind those who wait already
                self._house.lobby.stir()
            else:
                self._dispatch()
        else:
            self._refuse(refusal, Outcome.REFUSED)

    def _not_admitted(self) -> Refusal | None:
        """Why it may not go to an engine."""
        house = self._house
        self._key = house.keyring.key_of(self._incoming.header)
        if self._key is None:
            return refusals.unauthorized()
        if len(house.passages) >= house.config.limits.requests:
            return refusals.busy(_RETRY_AFTER_S)
        try:
            told = asked.read(self._body)
        except ValueError as e:
            return refusals.bad_request(f"The body must be a JSON object that names a model: {e}.")
        self._named = told.model
        if told.stream:
            self._comment_later(house.now_s())
        model = house.roster.model(self._named)
        if model is None or not self._key.may_use(model.name):
            return refusals.unknown_model(self._named)
        self._model = model
        self._choose = model.policy.chooser(told, self._incoming.header)
        return None

    def _dispatch(self, refusal: Refusal | None = None, outcome: Outcome = Outcome.NO_ENGINE) -> None:
        """To an engine that has not been tried yet; ``refusal`` is the answer where there is none."""
        now_s = self._house.now_s()
        assert self._choose is not None
        seat = self._model.choose(now_s, self._tried, self._choose)
        if seat is not None:
            self._go_to(seat, now_s)
        elif self._model.hope(now_s, self._tried):
            self._wait(refusal, outcome)
        else:
            self._refuse(refusal or self._model.nobody(now_s, _RETRY_AFTER_S), outcome)

    def _wait(self, refusal: Refusal | None = None, outcome: Outcome = Outcome.NO_ENGINE) -> None:
        room = self._model.room
        owner = self._key.owner if self._key is not None else None
        self._ticket = room.enter(owner, self._called, again=bool(self._tried))
        if self._ticket is None:
            self._refuse(refusal or refusals.queue_full(self._model.name, _RETRY_AFTER_S), outcome)
            return
        self._watch.waits(clock.now_ns())
        self._house.somebody_waits()
        self._expect(room.wait_s - (self._watch.queue_ns or 0) / 1e9, "No engine had room for the request in time.")

    def _called(self) -> bool:
        """Something has changed; whether there is no more to wait for."""
        now_s = self._house.now_s()
        if not self._model.has_room(now_s, self._tried) and self._model.hope(now_s, self._tried):
            return False
        self._wait_no_longer()
        self._dispatch()
        return True

    def _wait_no_longer(self) -> None:
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            self._model.room.leave(ticket)
            self._watch.waited(clock.now_ns())

    def _go_to(self, seat: "Seat", now_s: float) -> None:
        try:
            self._outgoing = self._body_for(seat)
        except ValueError as e:
            self._refuse(refusals.bad_request(f"The body's model cannot be renamed: {e}."), Outcome.REFUSED)
            return
        self._house.counts.failovers += bool(self._tried)
        self._tried.append(seat)
        engine = self._engine = seat.engine
        engine.sends(now_s)
        link = engine.waiting_link()
        if link is not None:
            self._carry(link)
        else:
            self._dial(engine)

    def _body_for(self, seat: "Seat") -> bytes:
        """The client's bytes, unless the engine knows the model by another name."""
        if seat.served == self._named:
            return self._body
        return asked.renamed(self._body, self._named, seat.served)

    def _dial(self, engine: "Engine") -> None:
        self._watch.theirs(clock.now_ns())
        self._expect(self._timeouts.connect_s, "The engine did not accept the connection in time.")
        self._dialing = self._house.loop.create_task(self._dialed(engine))

    async def _dialed(self, engine: "Engine") -> None:
        try:
            link = await engine.dial(self._house.loop)
        except (OSError, UnicodeError) as e:  # the second: a host that no name can be made of
            self._dialing = None
            if isinstance(e, OSError) and e.errno in _NO_DESCRIPTORS:
                self._house.descriptors.missed()  # which says nothing about the engine
                self._refuse(refusals.busy(_RETRY_AFTER_S), Outcome.REFUSED)
                return
            if engine.seems_gone(self._house.now_s()):
                self._tried.pop()  # it may be asked once more: it will be started again
            self._unreached(refusals.no_engine(self._model.name, _RETRY_AFTER_S), Outcome.NO_ENGINE)
        else:
            self._dialing = None
            self._watch.ours(clock.now_ns())
            self._carry(link)

    def _carry(self, link: "Link") -> None:
        self._link = link
        seat = self._tried[-1]
        link.carry(self, self._head_for(seat), self._outgoing)
        if self._paused:
            link.pause()
        self._watch.sent_ns = now_ns = clock.now_ns()
        self._watch.theirs(now_ns)
        self._expect(self._timeouts.first_byte_s, "The engine did not begin its answer in time.")

    def _head_for(self, seat: "Seat") -> bytes:
        line = heads.request_line(self._incoming, seat.engine.prefix, seat.engine.host)
        key = b"" if seat.credentials is None else b"authorization: Bearer %b\r\n" % seat.credentials
        dropped = self._house.keyring.dropped(engine_has_key=seat.credentials is not None)
        own = b"%bx-request-id: %b\r\n%b" % (line, self._id, key)
        return heads.request_head(self._incoming, own, len(self._outgoing), dropped)

    # The way back: what links say.

    def answered(self, link: "Link", head: bytes, read_ns: int) -> None:
        """The answer's head is here, and maybe more of it."""
        now_s = self._house.now_s()
        self._watch.ours(read_ns)
        link.engine.answered(link.status, now_s)
        if link.status in _PASSED_OVER and self._model.free(now_s, self._tried):
            self._leave_engine()
            self._dispatch()
            return
        cold_ns = link.engine.cold_ns(self._watch.start_ns)
        lines = heads.told(link.engine.label, None if link.named else self._id, self._watch, read_ns, cold_ns)
        self._delivery.begin(link, head, lines)
        self._watch.theirs(clock.now_ns())
        self._expect(self._timeouts.idle_s, "The engine has stopped in the midst of its answer.")

    def began(self, read_ns: int) -> None:
        """The first byte of the answer's body: nobody else will be asked."""
        self._watch.began_ns = read_ns
        self._comment_s = NEVER
        self._delivery.begun = True
        self._choose = None
        self._body = self._outgoing = b""  # the stream may last, and need not hold it
        self._house.let_go(self._incoming)

    def finished(self, link: "Link") -> None:
        """The answer is complete."""
        self._link = None
        told_apart = self._delivery.finish(link)
        if link.release():
            link.engine.keep(link, self._house.now_s())
        else:
            link.close()
        self._end(Outcome.OK, keep=told_apart and self._incoming.keeps_alive)

    def lost(self, link: "Link") -> None:
        """The connection broke before the answer was complete."""
        self._link = None
        if link.used and not link.touched:
            self._house.counts.retries += 1
            self._dial(link.engine)  # it had closed a quiet connection just then, and seen nothing of the request
        elif link.touched:
            refusal = refusals.bad_gateway("The engine broke off in the midst of its answer.")
            self._failed(refusal, elsewhere=self._delivery.may_start_over)
        else:
            self._failed(refusals.bad_gateway("The engine closed the connection without an answer."), elsewhere=True)

    def broke(self, link: "Link", what: str) -> None:
        """What came is no answer."""
        self._link = None
        link.abort()
        self._failed(refusals.bad_gateway(what))

    def _unreached(self, refusal: Refusal, outcome: Outcome) -> None:
        """No connection, so nothing was sent, and anybody else may be asked."""
        self._blame()
        self._leave_engine()
        self._dispatch(refusal, outcome)

    def _failed(self, refusal: Refusal, *, elsewhere: bool = False) -> None:
        """The engine took the request and did not finish it."""
        self._blame()
        self._leave_engine()
        if elsewhere and self._model.healthy(self._house.now_s(), self._tried):
            self._delivery.start_over()
            self._dispatch(refusal, Outcome.ENGINE_FAILED)
        else:
            self._refuse(refusal, Outcome.ENGINE_FAILED)

    def _blame(self) -> None:
        if self._engine is not None:
            self._engine.failed(self._house.now_s())

    # Time.

    def _expect(self, within_s: float, what: str) -> None:
        self._deadlines.expect(within_s, what, self._house.now_s())

    def look(self, now_s: float) -> None:
        """Whether it is late. What is late is never asked for elsewhere: the work would be done twice."""
        pieces = self._delivery.pieces
        late = self._deadlines.overdue(pieces[-1] if pieces else None, now_s)
        if late is None:
            if now_s >= self._comment_s and not self._paused:
                self._delivery.comment(self._id)
                self._comment_later(now_s)
            return
        if self._ticket is not None:
            self._wait_no_longer()
            self._refuse(refusals.waited_too_long(self._model.name, _RETRY_AFTER_S), Outcome.NO_ENGINE)
            return
        if self._dialing is not None:
            self._stop_dialing()
            self._unreached(refusals.timed_out(late), Outcome.TIMEOUT)
            return
        if self._paused:
            self._door.abort()  # it is the client that does not go on, and it cannot be told
            return
        self._blame()
        self._leave_engine()
        self._refuse(refusals.timed_out(late), Outcome.TIMEOUT)

    def _comment_later(self, now_s: float) -> None:
        every_s = self._house.config.keep_alive_comment_s
        if every_s is not None and self._incoming.version != "1.0":
            self._comment_s = now_s + every_s

    # For the door.

    def pause(self) -> None:
        """The client does not keep up."""
        self._paused = True
        if self._link is not None:
            self._link.pause()

    def resume(self) -> None:
        """It does again."""
        self._paused = False
        if self._link is not None:
            self._link.resume()
            self._expect(self._timeouts.idle_s, "The engine has stopped in the midst of its answer.")

    def abandon(self) -> None:
        """The client has left: so that the engine stops, its connection ends now."""
        self._leave_engine()
        self._note(Outcome.CLIENT_LEFT)

    def stop(self) -> None:
        """The gateway ends before the answer does."""
        self._leave_engine()
        self._refuse(refusals.busy(_RETRY_AFTER_S), Outcome.NO_ENGINE)

    # Endings.

    def _stop_dialing(self) -> None:
        if self._dialing is not None:
            self._dialing.cancel()
            self._dialing = None

    def _leave_engine(self) -> None:
        """Its load is one less, and whatever it still does for this request is stopped."""
        self._wait_no_longer()
        self._stop_dialing()
        link, self._link = self._link, None
        if link is not None:
            link.abort()
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.in_flight -= 1
            self._house.lobby.stir()

    def _refuse(self, refusal: Refusal, outcome: Outcome) -> None:
        """In the answer's place where none has begun, else in its last event; never a made-up finish."""
        if self._delivery.head_is_out:
            self._end(outcome, keep=False, cut=self._delivery.break_off(refusal))
        else:
            self._delivery.refuse(refusal, self._id)
            self._end(outcome, keep=self._incoming.keeps_alive and not refusal.closes)

    def _end(self, outcome: Outcome, *, keep: bool, cut: bool = False) -> None:
        self._leave_engine()
        self._note(outcome)
        self._door.done(keep=keep, cut=cut)

    def _note(self, outcome: Outcome) -> None:
        watch = self._watch
        self._house.passages.discard(self)
        self._house.note(
            Ending(
                request_id=self._id.decode("ascii"),
                route=self._route.path,
                key=self._key.owner if self._key is not None else None,
                model=self._model.name if self._model is not None else None,
                engine=self._tried[-1].engine.name if self._tried else None,
                status=self._delivery.status,
                outcome=outcome,
                hop_ns=watch.hop_ns,
                queue_ns=watch.queue_ns,
                first_byte_ns=None if watch.began_ns is None else watch.began_ns - watch.start_ns,
                total_ns=clock.now_ns() - watch.start_ns,
                output_tokens=tap.output_tokens(self._delivery.pieces) if outcome is Outcome.OK else None,
            )
        )
