"""One request's way to an engine and its answer's way back, whatever happens to either side.

Until an answer has begun for the client another engine may be asked; from then on nothing is tried again.
An engine's load counts from the choice of it until ``_leave``, which every ending goes through.
"""

import asyncio
from typing import TYPE_CHECKING

from withstand import clock
from withstand.gateway import heads, refusals, tap
from withstand.gateway.admission import TurnedAway, admission
from withstand.gateway.counts import Ending, Outcome, outcome_of
from withstand.gateway.deadlines import NEVER, Deadlines
from withstand.gateway.delivery import Delivery
from withstand.gateway.disaggregation.styles import split_of
from withstand.gateway.incoming import Incoming, request_id_of
from withstand.gateway.keys import Key
from withstand.gateway.money.till import Permit
from withstand.gateway.outgoing import Outgoing
from withstand.gateway.refusals import RETRY_AFTER_S, Refusal
from withstand.gateway.routes import Route
from withstand.gateway.stopwatch import Stopwatch
from withstand.gateway.trouble import Trouble, why_of
from withstand.gateway.waiting import Ticket

if TYPE_CHECKING:
    from withstand.gateway._splice import Splice
    from withstand.gateway.disaggregation.leg import Leg
    from withstand.gateway.disaggregation.split import Split
    from withstand.gateway.door import Door
    from withstand.gateway.engine import Engine, Seat
    from withstand.gateway.house import House
    from withstand.gateway.link import Link
    from withstand.gateway.policies import Choose
    from withstand.gateway.roster import Model

_PASSED_OVER = frozenset((429, 502, 503))
"""Answers that say "not here, not now": another engine may do better."""
_LATE = "The engine did not begin its answer in time."


class Passage:
    """Made when a request is complete; ``start`` it, and the door hears of its end."""

    def __init__(self, house: "House", door: "Door", incoming: Incoming, route: Route) -> None:
        self._house = house
        self._door = door
        self._incoming = incoming
        self._route = route
        self._id = request_id_of(incoming.head.header(b"x-request-id"))
        self.timeouts = house.timeouts[route.path]
        self._deadlines = Deadlines(house.now_s() + self.timeouts.total_s)
        self._watch = Stopwatch(incoming.read_ns)
        self.outgoing = Outgoing(incoming.head, incoming.body, self._id, house.keyring)
        self._body = b""
        self._key: Key | None = None
        self._permit: Permit | None = None
        self._model: Model  # not there for who is turned away
        self._model_name: str | None = None
        self._split: Split | None = None
        self._choose: Choose | None = None  # as the model's policy does; None once nobody else will be asked
        self._tried: list[Seat] = []
        self._engine: Engine | None = None
        self._link: Link | None = None
        self._dialing: asyncio.Task[None] | None = None
        self._ticket: Ticket | None = None  # its place in the waiting room
        self.delivery = Delivery(door.write, route.dialect, old=incoming.head.version == "1.0")
        self._comment_s = NEVER  # when the client is to hear that it has not been forgotten
        self._paused = False
        self._refusal: Refusal | None = None

    # The way there.

    def start(self) -> None:
        """Find out who is to answer, and send it there."""
        found = admission(self._house, self.outgoing, self._route, self._door.shown)
        self._key = found.key
        self._model_name = found.model.name if found.model is not None else None
        if isinstance(found, TurnedAway):
            self.refuse(found.refusal, Outcome.REFUSED)
            return
        self._model = found.model
        permit = self._permit = found.permit
        if permit is not None:
            self.outgoing.body, self.delivery.pieces = permit.body, permit.pieces
        if found.told.stream:
            self._comment_later(self._house.now_s())
        self._choose = self._model.policy.chooser(found.told, self.outgoing.head.header)
        self._house.passages.add(self)
        if self._model.room.count:
            self._wait()  # behind those who wait already
            self._house.lobby.stir()
        else:
            self._dispatch()

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
            self.refuse(refusal or self._model.nobody(now_s, RETRY_AFTER_S), outcome)

    def _wait(self, refusal: Refusal | None = None, outcome: Outcome = Outcome.NO_ENGINE) -> None:
        room = self._model.room
        owner = self._key.owner if self._key is not None else None
        self._ticket = room.enter(owner, self._called, again=bool(self._tried))
        if self._ticket is None:
            full = refusals.queue_full(self._model.name, RETRY_AFTER_S)
            self.refuse(*((refusal, outcome) if refusal is not None else (full, Outcome.QUEUE_FULL)))
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
        """It holds the engine also while another prefills for it."""
        if self._tried:
            self._house.counts.failovers += 1
        self._tried.append(seat)
        engine = self._engine = seat.engine
        engine.sends(now_s)
        try:
            if self._model.prefill is not None or self._split is not None:
                self._split = split_of(self._house, self, self._model, self._route, self._split)
            if self._split is None:
                self.reach()
            else:
                self._expect(self._split.left_s(self.timeouts.first_byte_s), _LATE)
                self._split.start()
                self._watch.theirs(clock.now_ns())
        except ValueError as e:
            self.refuse(refusals.bad_request(f"The body's fields cannot be changed: {e}."), Outcome.REFUSED)

    def reach(self) -> None:
        """The engine that was chosen is asked."""
        seat = self._tried[-1]
        self._body = self.outgoing.body_for(seat)
        if self._split is not None:
            self._watch.ours(clock.now_ns())
            self._body = self._split.decode_body(self._body)
        if (link := seat.engine.waiting_link()) is not None:
            self._carry(link)
        else:
            self._dial(seat.engine)

    def _dial(self, engine: "Engine") -> None:
        self._watch.theirs(clock.now_ns())
        self._expect(self.timeouts.connect_s, "The engine did not accept the connection in time.")
        self._dialing = self._house.loop.create_task(self._dialed(engine))

    async def _dialed(self, engine: "Engine") -> None:
        try:
            link = await engine.dial(self._house.loop)
        except (OSError, UnicodeError) as e:  # the second: a host that no name can be made of
            self._dialing = None
            if self._house.descriptors.lack(e):  # which says nothing about the engine
                self.refuse(refusals.busy(RETRY_AFTER_S), Outcome.REFUSED)
                return
            if engine.seems_gone(self._house.now_s()):
                self._tried.pop()  # it may be asked once more: it will be started again
            why = why_of(e)
            self._unreached(refusals.no_engine(self._model.name, RETRY_AFTER_S, why), Outcome.NO_ENGINE, why)
        else:
            self._dialing = None
            self._watch.ours(clock.now_ns())
            self._carry(link)

    def _carry(self, link: "Link") -> None:
        self._link = link
        link.carry(self, self.outgoing.head_for(self._tried[-1], len(self._body)), self._body)
        if self._paused:
            link.pause()
        self._watch.sends(clock.now_ns())
        within_s = self.timeouts.first_byte_s
        self._expect(within_s if self._split is None else self._split.sent(within_s), _LATE)

    # The way back: what links say.

    def answered(self, link: "Link", head: bytes, read_ns: int) -> None:
        """The answer's head is here, and maybe more of it."""
        now_s, status = self._house.now_s(), link.head.status
        if status in _PASSED_OVER and self._model.free(now_s, self._tried):
            link.engine.answered(status, now_s)
            self._watch.ours(read_ns)
            self._leave_engine()
            self._dispatch()
            return
        lines = heads.ours(link, self._id, self._watch, read_ns, self._split)
        self.delivery.begin(link, head, lines if self._house.till.idle else lines + self._limits())
        link.engine.answered(status, now_s)
        self._watch.worked(read_ns, clock.now_ns())
        if not link.is_complete:
            self._expect(self.timeouts.idle_s, "The engine has stopped in the midst of its answer.")

    def began(self, read_ns: int) -> None:
        """The first byte of the answer's body: nobody else will be asked."""
        self._watch.began_ns = read_ns
        self._choose, self._comment_s = None, NEVER
        self.delivery.begun = True
        self._body = self.outgoing.body = b""  # the stream may last, and need not hold it
        self._house.let_go(self._incoming)

    def splice(self, link: "Link") -> "Splice | None":
        """What the link reads goes to the client by itself from now on, if that is possible."""
        return None if self._paused else self._house.splicing.join(link, self._door)

    def finished(self, link: "Link") -> None:
        """The answer is complete."""
        self._link = None
        if self._split is not None and link.head.status < 300:
            self._split.finished()
        outcome = outcome_of(link.head.status, (self.delivery.pieces or ()) if link.head.is_events else ())
        told_apart = self.delivery.finish(link)
        link.engine.take_back(link, self._house.now_s())
        self._end(outcome, keep=told_apart and self._incoming.head.keeps_alive)

    def lost(self, link: "Link") -> None:
        """The connection broke before the answer was complete."""
        self._link = None
        if link.used and not link.touched:  # it had closed a quiet connection, and seen nothing of the request
            self._house.counts.retries += 1
            if self._split is None or self._split.repeatable:
                self._dial(link.engine)
            else:
                self.start_over()
        elif link.touched:
            refusal = refusals.bad_gateway("The engine broke off in the midst of its answer.")
            self._failed(refusal, elsewhere=self.delivery.may_start_over)
        else:
            self._failed(refusals.bad_gateway("The engine closed the connection without an answer."), elsewhere=True)

    def broke(self, link: "Link", what: str) -> None:
        """What came is no answer."""
        self._link = None
        link.abort()
        self._failed(refusals.bad_gateway(what))

    def _unreached(self, refusal: Refusal, outcome: Outcome, why: str) -> None:
        """No connection, so nothing was sent, and anybody else may be asked."""
        self._blame(why, unreachable=True)
        self._leave_engine()
        self._dispatch(refusal, outcome)

    def _failed(self, refusal: Refusal, *, elsewhere: bool = False) -> None:
        """The engine took the request and did not finish it."""
        self._blame(refusal.message)
        self._leave_engine()
        if elsewhere and self._model.healthy(self._house.now_s(), self._tried):
            self.delivery.start_over()
            self._dispatch(refusal, Outcome.ENGINE_FAILED)
        else:
            self.refuse(refusal, Outcome.ENGINE_FAILED)

    def _blame(self, why: str, *, unreachable: bool = False) -> None:
        if self._engine is not None:
            self._engine.failed(self._house.now_s(), Trouble(why.rstrip("."), unreachable))

    # What a split says, where another engine prefills.

    def start_over(self) -> None:
        """The engine is well, but what it was sent is of no use any more."""
        self._leave_engine()
        self._tried.pop()
        self.delivery.start_over()
        self._dispatch()

    def show(self, leg: "Leg") -> None:
        """Prefill's answer is the answer: decode could not give a better one."""
        self._watch.sent_ns = leg.sent_ns
        lines = heads.told(leg.seat.engine.label, self._id, self._watch, leg.ended_ns)
        self.delivery.show(leg.status, leg.head, lines, leg.body)
        self._end(outcome_of(leg.status), keep=self._incoming.head.keeps_alive)

    # Time.

    def _expect(self, within_s: float, what: str) -> None:
        self._deadlines.expect(within_s, what, self._house.now_s())

    def look(self, now_s: float) -> None:
        """Whether it is late. What is late is never asked for elsewhere: the work would be done twice."""
        late = self._deadlines.overdue(self.delivery.latest, now_s)
        if late is None:
            if now_s >= self._comment_s and not self._paused:
                self.delivery.comment(self._id, self._limits())
                self._comment_later(now_s)
            return
        if self._ticket is not None:
            self._wait_no_longer()
            self.refuse(self._model.late(now_s, RETRY_AFTER_S), Outcome.QUEUE_TIMEOUT)
            return
        if self._dialing is not None:
            self._unreached(refusals.timed_out(late), Outcome.TIMEOUT, "it accepts no connection in time")
            return
        if self._paused:
            self._door.abort()  # it is the client that does not go on, and it cannot be told
            return
        if self._split is None or not self._split.late():
            self._blame(late)
        self.refuse(refusals.timed_out(late), Outcome.TIMEOUT)

    def _comment_later(self, now_s: float) -> None:
        if (every_s := self._house.config.keep_alive_comment_s) is not None and self._incoming.head.version != "1.0":
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
            self._expect(self.timeouts.idle_s, "The engine has stopped in the midst of its answer.")

    def abandon(self) -> None:
        """The client has left: so that the engine stops, its connection ends now."""
        self._leave_engine()
        self._note(Outcome.CLIENT_LEFT)

    def stop(self) -> None:
        """The gateway ends before the answer does."""
        self.refuse(refusals.shutting_down(RETRY_AFTER_S), Outcome.SHUT_DOWN)

    # Endings.

    def _leave_engine(self) -> None:
        """Its load is one less, and whatever it still does for this request is stopped."""
        if self._ticket is not None:
            self._wait_no_longer()
        if self._dialing is not None:
            self._dialing.cancel()
            self._dialing = None
        if self._link is not None:
            link, self._link = self._link, None
            link.abort()
        if self._split is not None:
            self._split.cancel()
        if self._engine is not None:
            engine, self._engine = self._engine, None
            engine.rests()
            self._house.lobby.stir()

    def refuse(self, refusal: Refusal, outcome: Outcome) -> None:
        """In the answer's place where none has begun, else in its last event; never a made-up finish."""
        self._refusal = refusal
        if self.delivery.head_is_out:
            self._end(outcome, keep=False, cut=self.delivery.break_off(refusal))
        else:
            lines = heads.asked(self._tried[-1].engine.label) if self._tried else b""
            self.delivery.refuse(refusal, self._id, lines + self._limits())
            self._end(outcome, keep=self._incoming.head.keeps_alive and not refusal.closes)

    def _limits(self) -> bytes:
        return self._house.till.lines(self._key, self._route, self._house.now_s())

    def _end(self, outcome: Outcome, *, keep: bool, cut: bool = False) -> None:
        self._leave_engine()
        self._note(outcome)
        self._door.done(keep=keep, cut=cut)

    def _note(self, outcome: Outcome) -> None:
        house, watch, permit = self._house, self._watch, self._permit
        house.passages.discard(self)
        said = tap.said(self.delivery.pieces or (), b"" if permit is None else permit.first)
        house.note(
            Ending(
                self._id.decode("ascii"), self._route.path, self._key.owner if self._key is not None else None,
                self._model_name, self._tried[-1].engine.name if self._tried else None,
                self.delivery.status, outcome, watch.hop_ns, watch.queue_ns,
                None if watch.began_ns is None else watch.began_ns - watch.start_ns, clock.now_ns() - watch.start_ns,
                said.prompt, said.cached, said.completion, len(self._tried), self._refusal,
            ),
            permit, self._incoming.head.header(b"traceparent"),
        )  # fmt: skip
