"""Monotone repair: what a load breaks, every higher load breaks as well; loads that contradict this are pooled.

A probe that stopped early by bad luck is outvoted by the many requests of its neighbours: it is open again.
"""

from collections.abc import Sequence

import msgspec

from withstand.control.certainty import all_kept, first_broken
from withstand.control.probe import Probed, Standing
from withstand.control.share import Share
from withstand.spec import Promise


def latest(probed: Sequence[Probed]) -> list[Probed]:
    """Of loads that were tried once more, the last time counts."""
    return list({p.load: p for p in probed}.values())


def repaired(probed: Sequence[Probed], promises: Sequence[Promise]) -> list[Probed]:
    """In their order; what its pool does not bear out is open."""
    pools = [pooled(latest(probed), which) for which in range(len(promises))]
    return [_judged(one, [pool.get(one.load) for pool in pools], promises) for one in probed]


def _judged(one: Probed, shares: Sequence[Share | None], promises: Sequence[Promise]) -> Probed:
    if one.look.standing is Standing.HOLDS:
        borne_out = all_kept(shares, promises)
    elif one.look.standing is Standing.BREAKS:
        borne_out = first_broken(shares, promises) is not None
    else:
        return one
    if borne_out:
        return one
    return msgspec.structs.replace(one, look=msgspec.structs.replace(one.look, standing=Standing.OPEN))


def pooled(probed: Sequence[Probed], which: int) -> dict[float, Share]:
    """Load → share of what broke a promise; neighbours that fall are one, by their counts (Ayer et al. 1955)."""
    pools: list[tuple[Share, list[float]]] = []
    for one in sorted(probed, key=lambda one: one.load):
        share = one.look.share(which)
        if share is None:
            continue
        pools.append((share, [one.load]))
        while len(pools) > 1 and pools[-2][0].value > pools[-1][0].value:
            (a, low), (b, high) = pools[-2:]
            pools[-2:] = [(Share(a.broken + b.broken, a.of + b.of), low + high)]
    return {load: share for share, loads in pools for load in loads}
