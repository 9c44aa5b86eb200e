"""A calibration as text and as JSON: the steps as a table, then what follows from them."""

import textwrap
from collections.abc import Callable, Sequence

import msgspec

from withstand.metrics.calibration import Calibration, Step, Verdict, best
from withstand.metrics.rounding import whole_percent
from withstand.report.numbers import UNKNOWN, counted

_Column = tuple[str, str, Callable[[Step], str]]
_WIDTH = 80
_LONG_NS = 100_000_000
"""From here on, a tenth of a ms is enough, and keeps the columns narrow."""
_VERDICTS = {
    Verdict.GOOD: "good",
    Verdict.CLIENT: "client",
    Verdict.SERVER: "null server",
    Verdict.DISTURBED: "disturbed",
}

_CPU: _Column = ("", "CPU", lambda s: whole_percent(s.cpu_share))
_LATE: _Column = ("late", "p99 ms", lambda s: _ms(s.late_p99_ns))
_SERVER: _Column = ("null", "server", lambda s: whole_percent(s.server_share))
_STREAMED: tuple[_Column, ...] = (
    ("", "tokens/s", lambda s: f"{s.load.rate:,.0f}"),
    _CPU,
    _LATE,
    ("lag", "p99 ms", lambda s: _ms(s.lag_p99_ns)),
    ("ITL ±", "p99 ms", lambda s: _ms(s.itl_error_p99_ns)),
    ("TTFT ±", "p99 ms", lambda s: _ms(s.ttft_error_p99_ns)),
    _SERVER,
)
_SHORT: tuple[_Column, ...] = (("", "requests/s", lambda s: f"{s.load.rate:,.0f}"), _CPU, _LATE, _SERVER)


def calibration_text(calibration: Calibration) -> str:
    """Two tables and a few sentences."""
    streamed = [s for s in calibration.steps if s.load.streamed]
    short = [s for s in calibration.steps if not s.load.streamed]
    first = streamed[0].load
    blocks = [
        textwrap.fill(f"One worker. {calibration.placement}", _WIDTH),
        f"Streams of {first.tokens} tokens, one every {first.gap_s * 1e3:g} ms",
        _table(_STREAMED, streamed),
        "Short answers, not streamed",
        _table(_SHORT, short),
        textwrap.fill(" ".join(sentences(calibration)), _WIDTH),
    ]
    return "\n\n".join(blocks)


def calibration_json(calibration: Calibration) -> bytes:
    """All facts, each step with its verdict, and the capacity that follows."""
    tree = msgspec.to_builtins(calibration)
    for fields, step in zip(tree["steps"], calibration.steps, strict=True):
        fields |= {"verdict": step.verdict.value, "limit": step.limit or None}
    tree["whole"] = calibration.whole
    tree["capacity"] = msgspec.to_builtins(calibration.capacity)
    return msgspec.json.format(msgspec.json.encode(tree), indent=2) + b"\n"


def sentences(calibration: Calibration) -> list[str]:
    """What the client is good for here, with what error, and how many workers carry more."""
    capacity, why = calibration.capacity, _why(calibration)
    if capacity.tokens_per_s is None and capacity.requests_per_s is None:
        return [f"What this client is good for could not be measured here: {why}", *_all_the_same(calibration)]
    told = [_good_for(calibration), *_error(calibration), *_workers(calibration)]
    return told if calibration.whole else [*told, f"Its own limit was not found: {why}"]


def _good_for(calibration: Calibration) -> str:
    capacity = calibration.capacity
    tokens = _at_least(calibration, streamed=True, rate=capacity.tokens_per_s)
    requests = _at_least(calibration, streamed=False, rate=capacity.requests_per_s)
    at_once = f" ({counted(capacity.streams, 'stream')} at once)" if capacity.streams else ""
    return f"One worker is good for {tokens} tokens/s here{at_once} and for {requests} short requests/s."


def _at_least(calibration: Calibration, *, streamed: bool, rate: float | None) -> str:
    if rate is None:
        return "an unknown number of"
    return f"{'about' if calibration.found(streamed=streamed) else 'at least'} {rate:,.0f}"


def _error(calibration: Calibration) -> list[str]:
    top = best(calibration.steps, streamed=True)
    if top is None:
        return _all_the_same(calibration)
    if top.itl_error_p99_ns is None or top.ttft_error_p99_ns is None:
        return []
    ttft, itl = _ms(top.ttft_error_p99_ns), _ms(top.itl_error_p99_ns)
    return [f"Its own error there: TTFT within {ttft} ms, ITL within {itl} ms (p99, {top.clock.value} clock)."]


def _all_the_same(calibration: Calibration) -> list[str]:
    """What can be relied upon where no rate of streams was good: the stamps, if they were true in every step."""
    steps = [s for s in calibration.steps if s.true_stamps is not None]
    if not steps or not all(s.true_stamps for s in steps):
        return []
    ttft = _ms(max((s.ttft_error_p99_ns or 0) for s in steps))
    itl = _ms(max((s.itl_error_p99_ns or 0) for s in steps))
    return [f"Its stamps were true all the same: TTFT within {ttft} ms, ITL within {itl} ms (p99 of the worst step)."]


def _workers(calibration: Calibration) -> list[str]:
    if calibration.capacity.tokens_per_s is None:
        return []
    each = f"{calibration.capacity.tokens_per_s:,.0f} tokens/s"
    if calibration.cores == 1:
        return [f"A plan of more than {each} needs a machine with more cores: this one has one."]
    cores = f"up to {calibration.cores}, as many as there are cores"
    return [f"For more, take one of --workers for every {each}, {cores}; a server on the same machine needs its own."]


def _why(calibration: Calibration) -> str:
    """What stood in the way of the client's limits, and the cure where there is one."""
    if calibration.cores == 1:
        return "it shared its core with the null server. Calibrate where there are two."
    verdicts = {s.verdict for s in calibration.steps}
    if Verdict.DISTURBED in verdicts:
        return "other programs had the cores. Close what else runs on this machine, and calibrate again."
    if Verdict.SERVER in verdicts:
        return "the null server was at its own before."
    return "the time was too short. Give it longer by --seconds."


def _table(columns: Sequence[_Column], steps: Sequence[Step]) -> str:
    rows = [[c[0] for c in columns], [c[1] for c in columns], *([cell(s) for _, _, cell in columns] for s in steps)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
    verdicts = ["", "", *(_verdict(s) for s in steps)]
    return "\n".join(f"{line}  {verdict}".rstrip() for line, verdict in zip(lines, verdicts, strict=True))


def _verdict(step: Step) -> str:
    return _VERDICTS[step.verdict] + (f": {step.limit}" if step.limit else "")


def _ms(value_ns: int | None) -> str:
    if value_ns is None:
        return UNKNOWN
    return f"{value_ns / 1e6:.3f}" if value_ns < _LONG_NS else f"{value_ns / 1e6:.1f}"
