"""What stands between a key and the engines: a request is admitted against its key's limits and budget, and settled.

Every admitted request is settled once, however it ends. What it may use is held meanwhile. Nothing happens for a piece
of an answer: events are counted a few times a second, from what has gone by since.
"""

import math
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from withstand import clock
from withstand.gateway import tap
from withstand.gateway.counts import Counts, Ending, Outcome
from withstand.gateway.money import estimate
from withstand.gateway.money.bill import NANO, Bill, Charge, bill_of, cost_nusd, was_served
from withstand.gateway.money.meter import Held, Limit, Meter, Room
from withstand.gateway.money.rate_headers import lines_of
from withstand.gateway.money.refused import over_budget, refused, too_large
from withstand.gateway.money.rows import Slot, Sums, periods_of
from withstand.gateway.routes import Route
from withstand.gateway.terms import KeyLimits
from withstand.gateway.workers.board import Board

if TYPE_CHECKING:
    from withstand.gateway.config import Config
    from withstand.gateway.keys import Key
    from withstand.gateway.money.books import Books
    from withstand.gateway.refusals import Refusal

_FLUSH_NS = 1_000_000_000
_FIRST_BYTES = 4096
_UNLIMITED = KeyLimits()
_STREAM = b'"stream"'
"""Where nothing else must be known of a body, this is enough to look after a stream."""
_PERIODS = {"day": 0, "month": 1, "total": 2}


class Permit:
    """One request's, from its admission until it is settled. ``pieces`` are the latest of the answer."""

    __slots__ = ("body", "events", "first", "held", "is_free", "meter", "model", "owner", "pieces", "prompt_estimate")

    def __init__(self, owner: str, model: str, meter: Meter, held: Held, body: bytes, *, is_free: bool) -> None:
        self.owner = owner
        self.is_free = is_free
        self.model = model
        self.meter = meter
        self.held = held
        self.body = body
        """What is to be sent: the client's, or one that asks for usage."""
        self.prompt_estimate = estimate.prompt_tokens(body)
        self.pieces: deque[bytes] = deque(maxlen=tap.PIECES)
        self.first = b""
        """The beginning of a stream; some say there how long the prompt was."""
        self.events = 0

    def count(self) -> None:
        """Look at what has gone by, and let go of all but the last pieces."""
        old = [self.pieces.popleft() for _ in range(len(self.pieces) - tap.PIECES)]
        if old:
            gone = b"".join(old)
            self.first = self.first or gone[:_FIRST_BYTES]
            self.events += tap.events(gone)


class Till:
    """Lives as long as the process; ``apply`` gives it another configuration, and meters stay as they are."""

    def __init__(self, config: "Config", counts: Counts, books: "Books", board: Board | None = None) -> None:
        self._counts = counts
        self._board = board or Board()
        self.books = books
        self._meters: dict[str, Meter] = {}
        self._streams: set[Permit] = set()
        self._day = _today()
        self._flush_ns = 0
        books.load(self._day)
        self.apply(config)

    def apply(self, config: "Config") -> None:
        """From now on these limits, budgets and prices hold."""
        self._day = _today()  # nobody has looked while nothing was counted
        self._limits = {owner: key.limits.over(config.key_limits) for owner, key in config.keys.items()}
        self._common = config.key_limits
        self._budgets = {owner: key.budget for owner, key in config.keys.items() if key.budget is not None}
        self._prices = config.prices
        self._asks = config.usage.ask
        free = () if self._asks else (owner for owner, limits in self._limits.items() if limits == _UNLIMITED)
        self._free = frozenset(free) - set(self._budgets)
        """Owners whose requests are only counted."""
        self.idle = not config.counts_usage
        """Nobody wants to know, so nothing is counted: it would cost a request some microseconds."""

    # For the passage.

    def admit(self, key: "Key", model: str, body: bytes, route: Route, now_s: float) -> "Permit | Refusal":
        """A permit, or why there is none. Not asked while the till is ``idle``."""
        owner = key.owner or ""
        limits = self._limits.get(owner, self._common)
        meter = self._meter(owner)
        spent_out = None if route.is_free else self._spent_out(owner, meter)
        if spent_out is not None:
            return spent_out
        if owner in self._free:
            permit = Permit(owner, model, meter, meter.pass_by(), body, is_free=route.is_free)
            return self._permit(permit, streams=_STREAM in body)
        want = estimate.wanted(body)
        bill = (
            Bill()
            if route.is_free
            else Bill(estimate.prompt_tokens(body), completion=estimate.output_tokens(want, route.path))
        )
        if limits.tpm is not None and bill.tokens > limits.tpm:
            asked = bill.completion if estimate.says_output(want) else 0
            if bill.prompt + asked > limits.tpm:
                self._counts.limited[owner, Limit.TOKENS.value] += 1
                return too_large(bill.prompt, asked, limits.tpm)
        hindrance = meter.hindrance(limits, bill.tokens, now_s)
        if hindrance is not None:
            self._counts.limited[owner, hindrance[0].value] += 1
            return refused(*hindrance, limits, bill.tokens)
        held = meter.hold(limits, bill.tokens, cost_nusd(bill, self._prices.get(model)), now_s)
        told = estimate.asking(body, want, route.path) if self._asks else body
        permit = Permit(owner, model, meter, held, told, is_free=route.is_free)
        return self._permit(permit, streams=want.stream is True)

    def _permit(self, permit: Permit, *, streams: bool) -> Permit:
        if streams:
            permit.pieces = deque()  # cut short by ``count``
            self._streams.add(permit)
        return permit

    def settle(self, permit: Permit, ending: Ending, now_s: float) -> Charge:
        """What the request has cost. One that nobody has served is counted nowhere."""
        events = 0
        if permit.pieces.maxlen is None:
            self._streams.discard(permit)
            if ending.output_tokens is None or ending.outcome is not Outcome.OK:
                events = permit.events + tap.events(b"".join(permit.pieces))
        bill = Bill() if permit.is_free else bill_of(ending, permit.prompt_estimate, events)
        price = self._prices.get(permit.model)
        nusd = cost_nusd(bill, price)
        permit.meter.settle(permit.held, bill.tokens, now_s)
        if was_served(ending):
            self._book(permit, bill, nusd)
        return Charge(None if price is None else nusd, bill.estimated)

    def lines(self, key: "Key | None", route: Route, now_s: float) -> bytes:
        """Header lines about the limits of a key, each behind its line break."""
        if self.idle or key is None:
            return b""
        limits = self._limits.get(key.owner or "", self._common)
        if limits.rpm is None and limits.tpm is None:
            return b""
        meter = self._meter(key.owner or "")
        return lines_of(meter.rooms(limits, now_s), route.dialect, clock.wall_s())

    def terms(self, key: "Key", now_s: float) -> dict[str, Any]:
        """What a key may use, and what it has left: limits by their headers' names, and money."""
        owner = key.owner or ""
        limits, meter, budget = self._limits.get(owner, self._common), self._meter(owner), self._budgets.get(owner)
        rooms = {name: _builtins(room) for name, room in meter.rooms(limits, now_s).items()}
        if limits.concurrency is not None:
            rooms["concurrency"] = {"limit": limits.concurrency, "remaining": limits.concurrency - meter.under_way}
        if budget is None:
            return {"limits": rooms, "budget": None}
        spent_usd = self.books.spent_nusd(owner, periods_of(self._day)[_PERIODS[budget.per]]) / NANO
        money = {"usd": budget.usd, "per": budget.per, "spent_usd": spent_usd, "held_usd": meter.held_nusd / NANO}
        return {"limits": rooms, "budget": money}

    # For the house.

    def look(self, now_s: float) -> None:
        """A few times a second: count what streams have said, and hand over to the store each second."""
        for permit in self._streams:  # there may be some of before the last ``apply``
            permit.count()
        if self.idle:
            return
        for meter in self._meters.values():
            meter.show(now_s)
        now_ns = clock.now_ns()
        if now_ns >= self._flush_ns:
            self._flush_ns = now_ns + _FLUSH_NS
            self._day = _today()
            self.books.flush(self._day)

    def under_way(self) -> dict[str, int]:
        """Requests of each key."""
        return {owner: meter.under_way for owner, meter in self._meters.items()}

    def close(self) -> None:
        """What is in memory goes to the store."""
        self.books.close(_today())

    def _meter(self, owner: str) -> Meter:
        meter = self._meters.get(owner)
        if meter is None:
            meter = self._meters[owner] = Meter(self._board.row(f"key {owner}"))
        return meter

    def _book(self, permit: Permit, bill: Bill, nusd: int) -> None:
        sums = Sums(
            requests=1,
            estimated=int(bill.estimated),
            prompt_tokens=bill.prompt,
            cached_tokens=bill.cached,
            completion_tokens=bill.completion,
            cost_nusd=nusd,
        )
        self.books.add(Slot(permit.owner, permit.model, self._day), sums)
        self._counts.add_usage(permit.owner, sums)

    def _spent_out(self, owner: str, meter: Meter) -> "Refusal | None":
        """What is under way counts, so that many at once do not spend the last dollar many times."""
        budget = self._budgets.get(owner)
        if budget is None:
            return None
        period = periods_of(self._day)[_PERIODS[budget.per]]
        if self.books.spent_nusd(owner, period) + meter.held_nusd < budget.usd * NANO:
            return None
        self._counts.limited[owner, Limit.BUDGET.value] += 1
        return over_budget(budget)


def _builtins(room: Room) -> dict[str, Any]:
    """Rounded up, as in headers: nobody is to come too early."""
    return {**msgspec.to_builtins(room), "reset_s": math.ceil(room.reset_s * 1000) / 1000}


def _today() -> str:
    return clock.utc_iso(round(clock.wall_s() * 1e9))[:10]
