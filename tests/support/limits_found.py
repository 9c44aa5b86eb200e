"""A search for a limit that is over, as reports are given it."""

from withstand.control.limit import Limit
from withstand.control.probe import Look, Probed, Standing, Told
from withstand.control.search import Axis
from withstand.control.share import Share
from withstand.metrics.summary import Interval
from withstand.spec import promise_of

TTFT, SUCCESS = promise_of("ttft:p95:500"), promise_of("success:99%")


def probe(load: float, standing: Standing, broken: float, doubt: str = "", limited: int = 0) -> Probed:
    shares = (Share(broken, 200.0), Share(0.0, 200.0))
    promise = TTFT if standing is Standing.BREAKS else None
    look = Look(standing=standing, promise=promise, shares=shares, requests=200, doubt=doubt, limited=limited)
    return Probed(load, look, (Told(100 * load, 90 * load, None), None), f"rate-{load:g}")


HOLDS, BREAKS = probe(4.0, Standing.HOLDS, 2.0), probe(4.2, Standing.BREAKS, 30.0)


def searched_limit() -> Limit:
    """Of two promises and two loads."""
    return Limit(
        axis=Axis.RATE,
        promises=(TTFT, SUCCESS),
        load=4.11,
        interval=Interval(4.0, 4.2),
        first_broken=TTFT,
        probes=(HOLDS, BREAKS),
    )
