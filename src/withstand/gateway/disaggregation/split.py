"""One request's prefill, seen from its passage, which has chosen who decodes and holds that seat meanwhile.

A passage says ``start``, and hears of one of these: ``reach`` (decode may be asked now), ``start_over`` (with another
pair), ``show`` (prefill's answer is the answer), ``refuse``. What one style does differently is in its own module.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from withstand.gateway import asked, heads, refusals
from withstand.gateway.counts import Outcome
from withstand.gateway.disaggregation.bodies import Whole
from withstand.gateway.disaggregation.leg import Leg, Patience
from withstand.gateway.refusals import RETRY_AFTER_S

if TYPE_CHECKING:
    from withstand.gateway.config import Disaggregation
    from withstand.gateway.engine import Seat
    from withstand.gateway.house import House
    from withstand.gateway.passage import Passage
    from withstand.gateway.roster import Model

_ENCODINGS = frozenset((b"accept-encoding",))
"""Prefill's answer is read by us."""
_AFTER_ALL_S = 1.0
"""When the time for both legs is over the passage ends: by then it is too late to ask another prefill engine."""


class Split(ABC):
    """``whole`` says why decode does all of it; None = a prefill engine is asked."""

    def __init__(self, house: "House", passage: "Passage", model: "Model") -> None:
        self.whole: Whole | None = None
        self._house = house
        self._passage = passage
        self._model = model
        assert model.disaggregation is not None
        assert model.prefill is not None
        self._told: Disaggregation = model.disaggregation
        self._pool: Model = model.prefill
        self._failed: list[Seat] = []
        self._leg: Leg | None = None
        self._last: Leg | None = None
        """The one whose work decode goes on with."""
        self._since_s: float | None = None
        self._sent = False

    # For the passage.

    @abstractmethod
    def start(self) -> None:
        """Decode's seat has been chosen, maybe again.

        Raises:
            ValueError: the body's field names are no UTF-8.
        """

    @abstractmethod
    def decode_body(self, body: bytes) -> bytes:
        """What decode is sent.

        Raises:
            ValueError: the body's field names are no UTF-8.
        """

    def sent(self, within_s: float) -> float:
        """Decode has it; what is left of a time that holds for both legs."""
        self._sent = True
        return self.left_s(within_s)

    @property
    def is_outdated(self) -> bool:
        """The model's two parts come together in another way now, so that whatever begins anew needs another split."""
        return self._model.disaggregation != self._told

    @property
    def repeatable(self) -> bool:
        """Whether decode may be sent the same bytes once more."""
        return self.whole is not None

    def left_s(self, within_s: float) -> float:
        """Of a time that holds for both legs."""
        return within_s if self._since_s is None else max(0.0, within_s - (self._house.now_s() - self._since_s))

    def late(self) -> bool:
        """Something did not come in time; whether it is prefill that owes it."""
        if self._leg is None:
            return False
        self._leg.blame()
        return True

    def cancel(self) -> None:
        """Decode is not wanted any more, so neither is its prefill."""
        if self._leg is not None:
            self._leg.cancel()
            self._leg = None

    def finished(self) -> None:
        """Decode's answer is complete."""
        if self._leg is not None:
            self._leg.let_go()
            self._leg = None

    def told(self, decode_ns: int) -> bytes:
        """Lines of the answer's head: who prefilled, or why nobody, and how long each took."""
        if self.whole is not None:
            return heads.split(b"none; reason=%b" % self.whole.value.encode("ascii"), None, decode_ns)
        leg = self._last or self._leg
        assert leg is not None, "decode answers what prefill was asked for"
        return heads.split(leg.seat.engine.label, leg.ended_ns - leg.sent_ns if leg.ended_ns else None, decode_ns)

    def cold_ns(self, since_ns: int) -> int:
        """How much of the time since then it took to start prefill."""
        leg = self._last or self._leg
        return 0 if leg is None else leg.seat.engine.cold_ns(since_ns)

    # For the styles.

    def _begin(self, seat: "Seat", body: bytes) -> None:
        now_s = self._house.now_s()
        if self._since_s is None:
            self._since_s = now_s
        timeouts = self._passage.timeouts
        total_s = self.left_s(timeouts.first_byte_s) + _AFTER_ALL_S
        if self._told.prefill_s is not None:
            total_s = min(total_s, self._told.prefill_s)
        head = self._passage.outgoing.head_for_us(seat, len(body), _ENCODINGS)
        self._last, self._leg = None, Leg(self._house, seat, self._ended)
        self._leg.start(head, body, Patience(timeouts.connect_s, total_s))

    def _choose(self) -> "Seat | None":
        """Which prefill engine is asked; without any, what follows from that has been done."""
        outgoing = self._passage.outgoing
        choose = self._pool.policy.chooser(asked.read(outgoing.body), outgoing.head.header)
        seat = self._pool.choose(self._house.now_s(), self._failed, choose)
        if seat is None:
            self._give_up(None)
        return seat

    def _ended(self, leg: Leg) -> None:
        self._leg = None
        if leg.failure is None and leg.status < 300:
            self._last = leg
            self._prefilled(leg)
        elif self._passage.delivery.has_begun:
            self._passage.refuse(refusals.bad_gateway("The prefill engine failed."), Outcome.ENGINE_FAILED)
        elif leg.failure is None:
            self._passage.show(leg)  # it is the request that is wrong, and decode would say the same
        elif leg.gone or self.is_outdated:
            self._passage.start_over()
        elif leg.stale:
            self._house.counts.retries += 1
            self._again()
        else:
            self._failed.append(leg.seat)
            if self._pool.free(self._house.now_s(), self._failed):
                self._house.counts.failovers += 1
                self._again()
            else:
                self._give_up(leg)

    @abstractmethod
    def _prefilled(self, leg: Leg) -> None:
        """Prefill has answered."""

    @abstractmethod
    def _again(self) -> None:
        """Another prefill engine is to be asked; the client has heard nothing of the last one."""

    def _give_up(self, leg: Leg | None) -> None:
        """No prefill engine is left: decode does it alone, or the client is told why not."""
        reason = Whole.NO_PREFILL if leg is None or leg.failure is None else leg.failure
        if self._told.fallback:
            self.be_whole(reason)
            self._passage.reach()
        elif leg is not None and reason is Whole.STATUS:
            self._passage.show(leg)
        elif reason is Whole.NO_PREFILL:
            self._passage.refuse(self._model.nobody(self._house.now_s(), RETRY_AFTER_S), Outcome.NO_ENGINE)
        else:
            self._passage.refuse(*_refusal(reason))

    def be_whole(self, reason: Whole) -> None:
        """Decode does all of it."""
        self.whole = reason
        self._house.counts.fallbacks[reason.value] += 1


def _refusal(reason: Whole) -> tuple[refusals.Refusal, Outcome]:
    if reason is Whole.TIMEOUT:
        return refusals.timed_out("The prefill engine did not answer in time."), Outcome.TIMEOUT
    what = "gave no handle of the KV cache" if reason is Whole.NO_HANDLE else "broke off before its answer was complete"
    return refusals.bad_gateway(f"The prefill engine {what}."), Outcome.ENGINE_FAILED
