"""One request's way to an engine and its answer's way back, whatever happens to either side.

Until the first byte of an answer goes to the client another engine may be asked; from then on nothing is tried again.
An engine's load counts from the choice of it until ``_leave``, which every ending goes through.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, cast

from withstand import clock
from withstand.gateway import asked, heads, refusals, tap
from withstand.gateway.counts import Ending, Outcome
from withstand.gateway.deadlines import Deadlines
from withstand.gateway.incoming import Incoming, request_id
from withstand.gateway.keys import Key
from withstand.gateway.last_words import Framing, last_words
from withstand.gateway.money.till import Permit
from withstand.gateway.refusals import Refusal
from withstand.gateway.routes import Route
from withstand.gateway.stopwatch import Stopwatch

if TYPE_CHECKING:
    from withstand.gateway.door import Door
    from withstand.gateway.engine import Engine, Seat
    from withstand.gateway.house import House
    from withstand.gateway.link import Link
    from withstand.gateway.policies import Choose
    from withstand.gateway.roster import Model

_PASSED_OVER = frozenset((502, 503))
"""Answers that say "not here, not now": another engine may do better."""
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
        self._permit: Permit | None = None
        self._model = cast("Model", None)
        self._choose: Choose | None = None
        """How the model's policy chooses for this request; None once nobody else will be asked."""
        self._tried: list[Seat] = []
        self._engine: Engine | None = None
        self._link: Link | None = None
        self._dialing: asyncio.Task[None] | None = None
        self._framing: Framing | None = None
        """None until the answer has begun."""
        self._pieces: deque[bytes] = deque(maxlen=tap.PIECES)
        self._status = 0
        self._paused = False

    # The way there.

    def start(self) -> None:
        """Find out who is to answer, and send it there."""
        refusal = self._not_admitted()
        if refusal is None:
            self._house.passages.add(self)
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
        model = house.roster.model(self._named)
        if model is None or not self._key.may_use(model.name):
            return refusals.unknown_model(self._named)
        self._model = model
        permit = house.till.admit(self._key, model.name, self._body, self._route, house.now_s())
        if isinstance(permit, Refusal):
            return permit
        if permit is not None:
            self._permit, self._body, self._pieces = permit, permit.body, permit.pieces
        self._choose = model.policy.chooser(told, self._incoming.header)
        return None

    def _dispatch(self) -> None:
        """To an engine that has not been tried yet."""
        now_s = self._house.now_s()
        assert self._choose is not None
        seat = self._model.choose(now_s, self._tried, self._choose)
        if seat is None:
            self._refuse(refusals.no_engine(self._model.name, _RETRY_AFTER_S), Outcome.NO_ENGINE)
            return
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
        except (OSError, UnicodeError):  # the second: a host that no name can be made of
            self._dialing = None
            self._unreached(refusals.no_engine(self._model.name, _RETRY_AFTER_S), Outcome.NO_ENGINE)
        else:
            self._dialing = None
            self._watch.ours(clock.now_ns())
            self._carry(link)

    def _carry(self, link: "Link") -> None:
        self._link = link
        seat = self._tried[-1]
        link.carry(self, self._head_for(seat), self._outgoing)
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
        if link.status in _PASSED_OVER and self._model.healthy(now_s, self._tried):
            self._leave_engine()
            self._dispatch()
            return
        self._pass_on(link, head, read_ns)
        self._watch.theirs(clock.now_ns())
        self._expect(self._timeouts.idle_s, "The engine has stopped in the midst of its answer.")

    def _pass_on(self, link: "Link", head: bytes, read_ns: int) -> None:
        """The head with our lines in it; what follows goes from the link to the client without us."""
        self._status = link.status
        self._framing = Framing(link.is_events, link.chunked, link.ends_with_connection)
        engine_ns = read_ns - (self._watch.sent_ns or read_ns)
        lines = heads.told(link.engine.label, None if link.named else self._id, self._watch.hop_ns, engine_ns)
        end = head.index(b"\r\n")
        limits = self._house.till.lines(self._key, self._route, self._house.now_s())
        self._door.write(b"".join((head[:end], lines, b"\r\n", limits, head[end + 2 :])))
        self._pieces.append(head)
        self._choose = None
        self._body = self._outgoing = b""  # nobody else will be asked; the stream may last, and need not hold it
        self._incoming.parts.clear()
        link.flow(self._door.write, self._pieces.append)

    def began(self, read_ns: int) -> None:
        """The first byte of the answer's body."""
        self._watch.began_ns = read_ns

    def finished(self, link: "Link") -> None:
        """The answer is complete."""
        self._link = None
        reusable = link.release()
        if reusable:
            link.engine.keep(link, self._house.now_s())
        else:
            link.close()
        self._end(Outcome.OK, keep=reusable and self._incoming.keeps_alive)

    def lost(self, link: "Link") -> None:
        """The connection broke before the answer was complete."""
        self._link = None
        if link.used and not link.touched:
            self._house.counts.retries += 1
            self._dial(link.engine)  # it had closed a quiet connection just then, and seen nothing of the request
        elif link.touched:
            self._failed(refusals.bad_gateway("The engine broke off in the midst of its answer."))
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
        if self._model.untried(self._house.now_s(), self._tried):
            self._dispatch()
        else:
            self._refuse(refusal, outcome)

    def _failed(self, refusal: Refusal, *, elsewhere: bool = False) -> None:
        """The engine took the request and did not finish it."""
        self._blame()
        self._leave_engine()
        if elsewhere and self._model.healthy(self._house.now_s(), self._tried):
            self._dispatch()
        else:
            self._break_off(refusal, Outcome.ENGINE_FAILED)

    def _blame(self) -> None:
        if self._engine is not None:
            self._engine.failed(self._house.now_s())

    # Time.

    def _expect(self, within_s: float, what: str) -> None:
        self._deadlines.expect(within_s, what, self._house.now_s())

    def look(self, now_s: float) -> None:
        """Whether it is late. What is late is never asked for elsewhere: the work would be done twice."""
        late = self._deadlines.overdue(self._pieces[-1] if self._pieces else None, now_s)
        if late is None:
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
        self._break_off(refusals.timed_out(late), Outcome.TIMEOUT)

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
        self._break_off(refusals.busy(_RETRY_AFTER_S), Outcome.NO_ENGINE)

    # Endings.

    def _stop_dialing(self) -> None:
        if self._dialing is not None:
            self._dialing.cancel()
            self._dialing = None

    def _leave_engine(self) -> None:
        """Its load is one less, and whatever it still does for this request is stopped."""
        self._stop_dialing()
        link, self._link = self._link, None
        if link is not None:
            link.abort()
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.in_flight -= 1

    def _break_off(self, refusal: Refusal, outcome: Outcome) -> None:
        """In the answer's place where none has begun, else in its last event; never a made-up finish."""
        if self._framing is None:
            self._refuse(refusal, outcome)
            return
        piece = self._pieces[-1] if self._watch.began_ns is not None else None
        words = last_words(self._framing, piece, refusals.event(refusal, self._route.dialect))
        if words is not None:
            self._door.write(words)
        self._end(outcome, keep=False, cut=words is None and self._framing.open_ended)

    def _refuse(self, refusal: Refusal, outcome: Outcome) -> None:
        """Nothing of an answer has been sent: the refusal is the answer."""
        self._status = refusal.status
        limits = self._house.till.lines(self._key, self._route, self._house.now_s())
        self._door.write(refusals.answer(refusal, self._route.dialect, self._id, limits))
        self._end(outcome, keep=self._incoming.keeps_alive and not refusal.closes)

    def _end(self, outcome: Outcome, *, keep: bool, cut: bool = False) -> None:
        self._leave_engine()
        self._note(outcome)
        self._door.done(keep=keep, cut=cut)

    def _note(self, outcome: Outcome) -> None:
        watch = self._watch
        said = tap.said(self._pieces, self._permit.first if self._permit is not None else b"")
        self._house.passages.discard(self)
        self._house.note(
            Ending(
                request_id=self._id.decode("ascii"),
                route=self._route.path,
                key=self._key.owner if self._key is not None else None,
                model=self._model.name if self._model is not None else None,
                engine=self._tried[-1].engine.name if self._tried else None,
                status=self._status,
                outcome=outcome,
                hop_ns=watch.hop_ns,
                first_byte_ns=None if watch.began_ns is None else watch.began_ns - watch.start_ns,
                total_ns=clock.now_ns() - watch.start_ns,
                prompt_tokens=said.prompt,
                cached_tokens=said.cached,
                output_tokens=said.completion,
            ),
            self._permit,
        )
