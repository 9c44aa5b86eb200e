"""A calibration as text and as JSON: the steps as a table, then what follows from them."""

import textwrap
from collections.abc import Callable, Sequence

import msgspec

from withstand.metrics.calibration import Calibration, Step, Verdict, best
from withstand.report.numbers import UNKNOWN, count, counted

_Column = tuple[str, str, Callable[[Step], str]]
_WIDTH = 88
_VERDICTS = {
    Verdict.GOOD: "good",
    Verdict.CLIENT: "client's limit",
    Verdict.SERVER: "null server's limit",
    Verdict.DISTURBED: "disturbed",
}

_COMMON: tuple[_Column, ...] = (
    ("", "CPU", lambda s: f"{s.cpu_share:.0%}"),
    ("late p99", "ms", lambda s: _ms(s.late_p99_ns)),
)
_STREAMED: tuple[_Column, ...] = (
    ("", "tokens/s", lambda s: f"{s.load.rate:,.0f}"),
    ("", "streams", lambda s: count(s.load.streams)),
    *_COMMON,
    ("lag p99", "ms", lambda s: _ms(s.lag_p99_ns)),
    ("ITL err", "p99 ms", lambda s: _ms(s.itl_error_p99_ns)),
    ("TTFT err", "p99 ms", lambda s: _ms(s.ttft_error_p99_ns)),
    ("null", "server", lambda s: f"{s.server_share:.0%}"),
)
_SHORT: tuple[_Column, ...] = (
    ("", "requests/s", lambda s: f"{s.load.rate:,.0f}"),
    *_COMMON,
    ("null", "server", lambda s: f"{s.server_share:.0%}"),
)


def calibration_text(calibration: Calibration) -> str:
    """Two tables and a few sentences."""
    streamed = [s for s in calibration.steps if s.load.streamed]
    short = [s for s in calibration.steps if not s.load.streamed]
    first = streamed[0].load
    blocks = [
        f"One worker. {calibration.placement}",
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
    if calibration.capacity.tokens_per_s is None:
        return [f"What this client is good for could not be measured here: {_why(calibration)}"]
    told = [_good_for(calibration), *_error(calibration), _workers(calibration)]
    return told if calibration.whole else [*told, f"Its own limit was not found: {_why(calibration)}"]


def _good_for(calibration: Calibration) -> str:
    capacity = calibration.capacity
    tokens = _at_least(calibration, streamed=True, rate=capacity.tokens_per_s)
    requests = _at_least(calibration, streamed=False, rate=capacity.requests_per_s)
    return (
        f"One worker is good for {tokens} tokens/s here ({counted(capacity.streams or 0, 'stream')} at once) "
        f"and for {requests} short requests/s."
    )


def _at_least(calibration: Calibration, *, streamed: bool, rate: float | None) -> str:
    if rate is None:
        return "an unknown number of"
    return f"{'about' if calibration.found(streamed=streamed) else 'at least'} {rate:,.0f}"


def _error(calibration: Calibration) -> list[str]:
    top = best(calibration.steps, streamed=True)
    if top is None or top.itl_error_p99_ns is None or top.ttft_error_p99_ns is None:
        return []
    ttft, itl = _ms(top.ttft_error_p99_ns), _ms(top.itl_error_p99_ns)
    return [f"Its own error there: TTFT within {ttft} ms, ITL within {itl} ms (p99, {top.clock.value} clock)."]


def _workers(calibration: Calibration) -> str:
    each = f"{calibration.capacity.tokens_per_s:,.0f} tokens/s"
    if calibration.cores == 1:
        return f"A plan of more than {each} needs a machine with more cores: this one has one."
    return (
        f"For more, take one of --workers for every {each}, up to {calibration.cores}, as many as there are cores; "
        "a server on the same machine needs its own."
    )


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
    return UNKNOWN if value_ns is None else f"{value_ns / 1e6:.3f}"
