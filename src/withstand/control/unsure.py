"""What a load that is open lacked to be known to hold, by the rules of ``probe``. Pure."""

import math
from collections.abc import Sequence

from withstand.control.certainty import CHANCE
from withstand.control.probe import INDEPENDENT_MIN, Look
from withstand.control.share import Share
from withstand.metrics.rounding import percent
from withstand.spec import Promise


def why_open(look: Look, promises: Sequence[Promise]) -> str:
    """In half a sentence: of a promise too little was seen, else of the load, else its times had not settled."""
    pairs = list(zip(look.shares, promises, strict=False))
    unsure = [(share, p) for share, p in pairs if share is None or share.below(1 - p.share) > CHANCE]
    if unsure or not pairs:
        return "; ".join(_unsure(share, promise) for share, promise in unsure) or "no request told anything"
    least = min(share.of for share, _ in pairs if share)
    if least < INDEPENDENT_MIN:
        return f"{math.floor(least)} independent requests, and {INDEPENDENT_MIN:g} are needed"
    few = "" if least <= look.requests else f", or fewer than {INDEPENDENT_MIN:g} of its requests were independent"
    return f"its times had not settled{few}"


def _unsure(share: Share | None, promise: Promise) -> str:
    if share is None:
        return f"no request told anything of {promise}"
    needed, worth = math.ceil(math.log(CHANCE) / math.log(promise.share)), math.floor(share.of)
    if worth < needed:
        return f"worth {worth:,} independent requests, and {promise} needs {needed:,} to be known"
    broken, allowed = percent(share.value), percent(1 - promise.share)
    return f"{broken} of {worth:,} independent requests is too near the {allowed} that may break {promise}"
