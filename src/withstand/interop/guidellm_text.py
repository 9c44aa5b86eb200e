"""The printed report of GuideLLM 0.2 and 0.3: two tables with headers over two lines, joined by the order of rows."""

from collections.abc import Sequence

from withstand.interop.build import RunBuilder
from withstand.interop.guidellm import NOTES
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place

_PARTS = ("Comp", "Inc", "Err")
_INFO = ("Benchmark", "Start Time", "End Time", "Duration (s)", *_PARTS * 5)
_STATS = ("Benchmark", "Per Second", "Concurrency", "mean", "mean", *("mean", "median", "p99") * 4)


def recognises(lines: Sequence[str]) -> bool:
    """Its two tables."""
    return any(line.strip() == "Benchmarks Stats:" for line in lines)


def read(lines: Sequence[str], place: Place) -> list[ImportedRun]:
    """Rows of ``Benchmarks Info`` and ``Benchmarks Stats``, joined by their order; none of other columns."""
    info, stats = _rows(lines, "Benchmarks Info:", _INFO), _rows(lines, "Benchmarks Stats:", _STATS)
    if len(info) != len(stats):
        return []
    return [
        _run(i, row, cells, place.at(f"line {line}"))
        for i, ((_, row), (line, cells)) in enumerate(zip(info, stats, strict=True))
    ]


def _rows(lines: Sequence[str], title: str, header: Sequence[str]) -> list[tuple[int, list[str]]]:
    """Data rows below a title, each with its line: those between the ruled line and the closing one.

    A narrow terminal has wrapped every line, the ruled one too: pieces are joined until they have all columns.
    """
    start = next((i for i, line in enumerate(lines) if line.strip() == title), len(lines))
    heading, rows = "", list[tuple[int, list[str]]]()
    pending, ruled = "", False
    for number, line in enumerate(lines[start + 1 :], start=start + 2):
        bare = line.strip()
        if bare and set(bare) == {"="}:
            if ruled:
                break
        elif bare and not set(bare) - {"-", "|"}:
            ruled = True
        elif not ruled:
            heading += line
        elif bare:
            pending += line
            if pending.count("|") >= len(header) - 1:
                rows.append((number, _cells(pending)))
                pending = ""
    whole = _cells(heading)[-len(header) :] == list(header) and not pending
    return rows if whole and all(len(cells) == len(header) for _, cells in rows) else []


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


def _run(index: int, info: list[str], stats: list[str], place: Place) -> ImportedRun:
    run = place.builder("GuideLLM printed table", "GuideLLM")
    asked(run, info[0])
    names = ("duration_s", "completed", "incomplete", "failed")
    for name, cell in zip(names, info[3:7], strict=False):
        run.number(name, cell)
    run.number("request_throughput", stats[1])
    run.number("concurrency_mean", stats[2])
    run.number("output_throughput", stats[3])
    for name, at, scale in (("e2el", 5, 1000.0), ("ttft", 8, 1.0), ("tpot", 11, 1.0)):
        for which, offset in (("mean", 0), ("p50", 1), ("p99", 2)):
            run.stat(name, which, stats[at + offset], scale)
    run.leave("TPOT", "GuideLLM's meaning of it changed between versions; its ITL is taken as TPOT.")
    for name, definition in NOTES.items():
        run.note([name], definition)
    run.label("benchmark", str(index + 1))
    return run.build()


def asked(run: RunBuilder, strategy: str) -> None:
    """``constant@10.00``, ``concurrent@3``, ``synchronous``."""
    kind, _, load = strategy.partition("@")
    run.label("strategy", strategy)
    run.condition("max_concurrency", {"concurrent": load, "synchronous": 1}.get(kind))
    run.rate("inf" if kind in {"concurrent", "synchronous", "throughput"} else load or None)
