"""The steady window of a stage, by a stated rule: without the filling at its start and the emptying at its end.

The plateau is the median, over the time in which any request was in flight, of how many were. The window goes from
the first instant with at least 90 % of it to the last one, but not beyond the last send, after which a stage only
empties; both are rounded inward to 0.1 s. There is none when it would be shorter than a second or hold fewer than ten
ends: so few would decide the number by where they fall.
"""

from bisect import bisect_left
from collections import Counter

from withstand.metrics.flow import BIN_NS, Flow
from withstand.metrics.rates import NS_PER_S
from withstand.metrics.summary import SteadyWindow

_PLATEAU_SHARE = 0.9
_SHORTEST_NS = 1_000_000_000
_FEWEST_ENDS = 10


def steady_window(flow: Flow) -> SteadyWindow | None:
    """The window and its rates; None if there is none worth the name."""
    plateau = _plateau(flow)
    if not plateau:
        return None
    start_ns, end_ns = _inward(*_edges(flow, _PLATEAU_SHARE * plateau))
    ends = sorted(flow.completed)
    completed = bisect_left(ends, end_ns) - bisect_left(ends, start_ns)
    if end_ns - start_ns < _SHORTEST_NS or completed < _FEWEST_ENDS:
        return None
    return _window(flow, start_ns, end_ns, completed)


def _plateau(flow: Flow) -> int | None:
    """The level that half of the time is at or below."""
    held_ns: Counter[int] = Counter()
    before_ns, before = 0, 0
    for now_ns, level in flow.course():
        held_ns[before] += now_ns - before_ns if before else 0
        before_ns, before = now_ns, level
    passed_ns = 0
    for level in sorted(held_ns):
        passed_ns += held_ns[level]
        if 2 * passed_ns >= held_ns.total():
            return level
    return None


def _edges(flow: Flow, threshold: float) -> tuple[int, int]:
    start_ns = end_ns = None
    above = False
    for now_ns, level in flow.course():
        if above and level < threshold:
            end_ns = now_ns
        above = level >= threshold
        if above and start_ns is None:
            start_ns = now_ns
    assert start_ns is not None
    assert end_ns is not None, "the course ends at 0, below any threshold"
    return start_ns, min(end_ns, max(flow.sent))


def _inward(start_ns: int, end_ns: int) -> tuple[int, int]:
    return -(-start_ns // BIN_NS) * BIN_NS, end_ns // BIN_NS * BIN_NS


def _window(flow: Flow, start_ns: int, end_ns: int, completed: int) -> SteadyWindow:
    length_s = (end_ns - start_ns) / NS_PER_S
    begin_ns = flow.begin_ns or 0
    tokens = flow.tokens_by_bin
    inside = [tokens[slot] for slot in range(start_ns // BIN_NS, end_ns // BIN_NS) if slot in tokens]
    return SteadyWindow(
        start_s=(start_ns - begin_ns) / NS_PER_S,
        end_s=(end_ns - begin_ns) / NS_PER_S,
        request_throughput=completed / length_s,
        output_throughput=sum(inside) / length_s if tokens else None,
    )
