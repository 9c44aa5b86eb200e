"""Are promises kept, or is one broken, by shares that chance hardly makes? ``CHANCE`` is that of being wrong."""

from collections.abc import Sequence

from withstand.control.share import Share
from withstand.spec import Promise

CHANCE = 0.0025


def first_broken(shares: Sequence[Share | None], promises: Sequence[Promise]) -> Promise | None:
    """That so many broke it by luck has a chance of ``CHANCE`` at most; None = of none."""
    pairs = zip(shares, promises, strict=True)
    return next((p for share, p in pairs if share and share.above(1 - p.share) <= CHANCE), None)


def all_kept(shares: Sequence[Share | None], promises: Sequence[Promise]) -> bool:
    """That so few broke them by luck has a chance of ``CHANCE`` at most, for each of them."""
    return all(share and share.below(1 - p.share) <= CHANCE for share, p in zip(shares, promises, strict=True))
