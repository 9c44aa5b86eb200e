"""The printed report of GuideLLM since 0.4: several ruled tables under three rows of headings, joined by their order.

Its throughputs are of all requests, failed ones too. Numbers have one decimal, latencies of requests one of a second.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from withstand.interop import values
from withstand.interop.build import RunBuilder
from withstand.interop.guidellm import NOTES
from withstand.interop.guidellm_text import asked
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place

_Key = tuple[str, str, str]
_RULE = "|="
_HEADINGS = 3
_NAME = ("Benchmark", "Strategy", "")
_NUMBERS: Mapping[_Key, str] = {
    ("Timings", "Dur", "Sec"): "duration_s",
    ("Requests", "Comp", "Tot"): "completed",
    ("Requests", "Inc", "Tot"): "incomplete",
    ("Requests", "Err", "Tot"): "failed",
    ("Input Tokens", "Comp", "Tot"): "total_input_tokens",
    ("Output Tokens", "Comp", "Tot"): "total_output_tokens",
    ("Requests", "Concurrency", "Mean"): "concurrency_mean",
    ("Requests", "Per Sec", "Mean"): "attempts_per_s",
}
_TIMES = {
    ("Request Latency", "Sec"): ("e2el", 1000.0), ("TTFT", "ms"): ("ttft", 1.0), ("TTFOT", "ms"): ("ttft_output", 1.0),
    ("ITL", "ms"): ("tpot", 1.0),
}  # fmt: skip
_STATS = {"Mean": "mean", "Mdn": "p50", "p95": "p95"}
_COARSE_S = 5.0
_OF_ALL = ("Output Tokens", "Per Sec", "Mean")


def recognises(lines: Sequence[str]) -> bool:
    """The first of its tables."""
    return any("Run Summary Info" in line for line in lines) and any(line.startswith(_RULE) for line in lines)


def read(lines: Sequence[str], place: Place) -> list[ImportedRun]:
    """One run a row of every table, by its place among the rows."""
    found: dict[int, dict[_Key, str]] = defaultdict(dict)
    line_of: dict[int, int] = {}
    for header, rows in _tables(lines):
        for i, (number, cells) in enumerate(rows):
            line_of.setdefault(i, number)
            found[i] |= {key: cell for key, cell in zip(header, cells, strict=True) if key not in found[i]}
    return [_run(cells, place.at(f"line {line_of[i]}")) for i, cells in found.items()]


def _tables(lines: Sequence[str]) -> Iterator[tuple[list[_Key], list[tuple[int, list[str]]]]]:
    """Between ruled lines: the headings, and the rows below their second rule. What does not fit is none."""
    header: list[_Key] = []
    part: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines, start=1):
        if not line.startswith("|"):
            header, part = [], []
        elif not set(line.strip()) - {"|", "=", "-"}:
            widths = {len(cells) for _, cells in part}
            if header and part and widths == {len(header)}:
                yield header, part
            is_heading = len(part) == _HEADINGS and len(widths) == 1 and "-" in line
            header = list(zip(*(_spread(cells) for _, cells in part), strict=True)) if is_heading else []
            part = []
        else:
            part.append((number, line.strip().removeprefix("|").removesuffix("|").split("|")))


def _spread(cells: Sequence[str]) -> list[str]:
    """``Timings   |||`` is one heading over three columns: a cell of no width at all goes on with the one before."""
    spread: list[str] = []
    for cell in cells:
        spread.append(spread[-1] if spread and not cell else cell.strip())
    return spread


def _run(cells: Mapping[_Key, str], place: Place) -> ImportedRun:
    run = place.builder("GuideLLM printed table", "GuideLLM")
    asked(run, cells.get(_NAME, "").strip())
    for key, name in _NUMBERS.items():
        run.number(name, _value(cells.get(key)), said=" ".join(key))
    for (group, unit), (name, scale) in _TIMES.items():
        for stat, which in _STATS.items():
            _time(run, name, which, _value(cells.get((group, unit, stat))), scale)
    if _OF_ALL in cells:
        run.leave("output tokens a second", "they are of all requests, failed and cut ones too.")
    run.leave("TPOT", "GuideLLM's meaning of it changed between versions; its ITL is taken as TPOT.")
    for name, definition in NOTES.items():
        run.note([name], definition)
    return run.build()


def _time(run: RunBuilder, name: str, which: str, cell: str | None, scale: float) -> None:
    value = values.number(cell)
    if name == "e2el" and value is not None and value < _COARSE_S:
        run.leave(f"request latency {which}", f"it is printed to a tenth of a second ({cell}).")
    else:
        run.stat(name, which, cell, scale)


def _value(cell: str | None) -> str | None:
    """``52.3 ± 1.5`` and ``62.8*`` have their uncertainty and a mark behind them."""
    return None if cell is None else cell.partition("±")[0].strip().removesuffix("*")
