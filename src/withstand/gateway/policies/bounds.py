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
