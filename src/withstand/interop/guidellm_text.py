"""The printed report of GuideLLM 0.2 and 0.3: two tables with headers over two lines, joined by the order of rows."""

from collections.abc import Sequence

from withstand.interop.guidellm import NOTES
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place


def recognises(lines: Sequence[str]) -> bool:
    """Its two tables."""
    return any(line.strip() == "Benchmarks Stats:" for line in lines)


def read(lines: Sequence[str], place: Place) -> list[ImportedRun]:
    """Rows of ``Benchmarks Info`` and ``Benchmarks Stats``, joined by their order."""
    info, stats = _rows(lines, "Benchmarks Info:"), _rows(lines, "Benchmarks Stats:")
    return [_run(i, row, stats[i][1], place, stats[i][0]) for i, (_, row) in enumerate(info) if i < len(stats)]


def _rows(lines: Sequence[str], title: str) -> list[tuple[int, list[str]]]:
    """Data rows below a title: those behind the ruled line, until the closing one."""
    starts = [i for i, line in enumerate(lines) if line.strip() == title]
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines[starts[0] + 1 :], start=starts[0] + 2) if starts else ():
        if set(line.strip()) == {"="} and rows:
            break
        if "|" in line and set(line.strip()) - {"-", "|"}:
            rows.append((number, [cell.strip() for cell in line.split("|")]))
    return rows[2:]


def _run(index: int, info: list[str], stats: list[str], place: Place, line: int) -> ImportedRun:
    run = place.at(f"line {line}").builder("GuideLLM printed table", "GuideLLM")
    run.label("strategy", info[0])
    names = ("duration_s", "completed", "incomplete", "failed")
    for name, cell in zip(names, info[3:7], strict=False):
        run.number(name, cell)
    run.number("request_throughput", _cell(stats, 1))
    run.number("concurrency_mean", _cell(stats, 2))
    run.number("output_throughput", _cell(stats, 3))
    for name, at, scale in (("e2el", 5, 1000.0), ("ttft", 8, 1.0), ("tpot", 11, 1.0)):
        for which, offset in (("mean", 0), ("p50", 1), ("p99", 2)):
            run.stat(name, which, _cell(stats, at + offset), scale)
    run.leave("TPOT", "GuideLLM's meaning of it changed between versions; its ITL is taken as TPOT.")
    for name, definition in NOTES.items():
        run.note([name], definition)
    run.label("benchmark", str(index + 1))
    return run.build()


def _cell(cells: list[str], at: int) -> str | None:
    return cells[at] if at < len(cells) else None
