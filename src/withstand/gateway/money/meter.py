"""One key's use of its limits: pure, with the time passed in. The limits are passed in too, for they may change.

Where the gateway has several workers, each keeps its own windows and shows their sums to the others; so two requests
that come to two workers in the same microseconds may both be let in where one would have been.
"""

from enum import Enum

from msgspec import Struct

from withstand.gateway.money.window import WINDOW_S, Window
from withstand.gateway.terms import KeyLimits
from withstand.gateway.workers.board import Cell, Row, private_row


class Limit(Enum):
    """What may keep a key's request out."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    CONCURRENCY = "concurrency"
    BUDGET = "budget"


class Held(Struct, frozen=True):
    """What one request takes up until it is settled."""

    tokens: int
    nusd: int
    at_s: float


_NOTHING = Held(0, 0, 0.0)


class Room(Struct, frozen=True):
    """Of one limit of a window: what a client is told in headers."""

    limit: int
    remaining: int
    reset_s: float


class Meter:
    """Of one key; lives as long as the process, whatever becomes of the configuration."""

    __slots__ = ("_row", "requests", "tokens")

    def __init__(self, row: Row | None = None) -> None:
        self.requests = Window()
        self.tokens = Window()
        self._row = row or private_row()

    @property
    def under_way(self) -> int:
        """Requests, in whichever worker."""
        return self._row.total(Cell.UNDER_WAY)

    @property
    def held_nusd(self) -> int:
        """What they may cost."""
        return self._row.total(Cell.HELD_NUSD)

    def show(self, now_s: float) -> None:
        """Let the others know what the windows hold; now and then, for it grows less by itself."""
        self.requests.forget(now_s)
        self.tokens.forget(now_s)
        self._show()

    def _show(self) -> None:
        self._row.put(Cell.REQUESTS, self.requests.total)
        self._row.put(Cell.TOKENS, self.tokens.total)

    def _others(self, cell: Cell) -> int:
        return self._row.total(cell) - self._row.mine(cell)

    def hindrance(self, limits: KeyLimits, tokens: int, now_s: float) -> tuple[Limit, float] | None:
        """The limit that another request would exceed, and for how long it would; None = it may come in."""
        if limits.concurrency is not None and self.under_way >= limits.concurrency:
            return Limit.CONCURRENCY, 1.0
        requests_s = (
            0.0 if limits.rpm is None else self.requests.wait_s(1, limits.rpm, now_s, self._others(Cell.REQUESTS))
        )
        tokens_s = (
            0.0
            if limits.tpm is None
            else self.tokens.wait_s(_held(tokens, limits), limits.tpm, now_s, self._others(Cell.TOKENS))
        )
        if requests_s == tokens_s == 0:
            return None
        return (Limit.REQUESTS, requests_s) if requests_s >= tokens_s else (Limit.TOKENS, tokens_s)

    def hold(self, limits: KeyLimits, tokens: int, nusd: int, now_s: float) -> Held:
        """A request comes in."""
        held = Held(0 if limits.tpm is None else _held(tokens, limits), nusd, now_s)
        if limits.rpm is not None:
            self.requests.add(1, now_s)
        self.tokens.add(held.tokens, now_s)
        self._row.add(Cell.UNDER_WAY, 1)
        self._row.add(Cell.HELD_NUSD, nusd)
        self._show()
        return held

    def pass_by(self) -> Held:
        """One comes in that nothing limits."""
        self._row.add(Cell.UNDER_WAY, 1)
        return _NOTHING

    def settle(self, held: Held, tokens: int, now_s: float) -> None:
        """It is over, and has used so many."""
        self._row.add(Cell.UNDER_WAY, -1)
        self._row.add(Cell.HELD_NUSD, -held.nusd)
        if not held.tokens:
            return  # nobody counted them when it came in
        if tokens < held.tokens:
            self.tokens.take_back(held.tokens - tokens, held.at_s)
        else:
            self.tokens.add(tokens - held.tokens, now_s)
        self._show()

    def rooms(self, limits: KeyLimits, now_s: float) -> dict[str, Room]:
        """By ``requests`` and ``tokens``, as far as they are limited."""
        told = {
            "requests": (self.requests, limits.rpm, self._others(Cell.REQUESTS)),
            "tokens": (self.tokens, limits.tpm, self._others(Cell.TOKENS)),
        }
        return {
            name: _room(window, limit, others, now_s)
            for name, (window, limit, others) in told.items()
            if limit is not None
        }


def _held(tokens: int, limits: KeyLimits) -> int:
    """What is only assumed of an answer may be above the limit, and takes all of it."""
    return tokens if limits.tpm is None else min(tokens, limits.tpm)


def _room(window: Window, limit: int, others: int, now_s: float) -> Room:
    reset_s = WINDOW_S + 1 if others else window.empty_in_s(now_s)
    return Room(limit, max(0, limit - window.total - others), reset_s)
