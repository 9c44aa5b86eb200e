"""A bound on how much more than its share an engine may have to do before what prefers it is sent elsewhere."""

from collections.abc import Sequence

from withstand.gateway.engine import Seat


def within(seats: Sequence[Seat], now_s: float, bound: float) -> list[Seat]:
    """Those that may take one more: at least one, where the bound is 1 or more.

    With the new request ``n`` are under way; an engine whose share of the weights is ``w`` may have ``bound · w · n``
    of them (Mirrokni, Thorup, Zadimoghaddam, "Consistent hashing with bounded loads", 2018).
    """
    shares = [seat.share(now_s) for seat in seats]
    loads = [seat.engine.load(now_s) for seat in seats]
    each = bound * (sum(loads) + 1) / sum(shares)
    free = [seat for seat, load, share in zip(seats, loads, shares, strict=True) if load < each * share]
    return free or [min(seats, key=lambda seat: seat.load(now_s))]  # rounding, at a bound of exactly 1


def starving(seats: Sequence[Seat], now_s: float, bound: float, preferred: Seat) -> Seat | None:
    """Who has less than its share by the bound, while the one that is preferred is half way to it; None = nobody.

    The bound alone lets an engine stand idle as long as the others can share its part among them.
    """
    least = min(seats, key=lambda seat: seat.load(now_s))
    each = (sum(seat.engine.load(now_s) for seat in seats) + 1) / sum(seat.share(now_s) for seat in seats)
    starves = least.load(now_s) * bound < each and preferred.load(now_s) >= each * (1 + bound) / 2
    return least if starves else None
