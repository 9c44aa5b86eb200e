"""The load tests behind the article of seed 002: ``benchmark.py``'s CSV and tables, ``load_test.py``'s reports.

Two clients of one author with two meanings of tok/s: benchmark.py divides all tokens by the time of the run;
load_test.py means the speeds of single requests, with tokens guessed as four letters each. benchmark.py's requests a
second count failed ones too.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from withstand.interop import values
from withstand.interop.build import RunBuilder
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place
from withstand.interop.tables import Table, csv_dicts

_CSV_KEYS = frozenset({"total_requests", "success_count", "error_count", "requests_per_sec"})
_CSV_STAT = re.compile(r"^(?P<metric>ttft|latency|tpot|itl)_(?P<stat>p\d+)_ms$")
_COLUMN = re.compile(r"^(?P<metric>TTFT|Total|Lat|TPOT|ITL) (?P<stat>p\d+)$")
_METRICS = {"ttft": "ttft", "latency": "e2el", "lat": "e2el", "total": "e2el", "tpot": "tpot", "itl": "itl"}
_LOADS = {"Concurrency": "max_concurrency", "Prompt Tokens": "input_tokens"}
_TARGETS = frozenset({"Target RPS", "Rate (req/s)"})
_MODEL = re.compile(r"^[^\w\n]{0,8}Model[^\w\n]{1,12}(?P<model>[\w./-]+)", re.MULTILINE)
_STEP = re.compile(
    r"Testing (?P<rate>[\d.]+) RPS for (?P<seconds>[\d.]+)s\W+Sent: (?P<sent>\d+)[^\n]*Success: (?P<ok>\d+)"
)
_OF = re.compile(r"^(?P<ok>\d+)\s*/\s*(?P<all>\d+)$")


def recognises_csv(header: Sequence[str]) -> bool:
    """``benchmark.py``'s columns."""
    return set(header) >= _CSV_KEYS


def read_csv(rows: Sequence[Sequence[str]], place: Place) -> list[ImportedRun]:
    """One run a row."""
    return [_csv_run(row, place.at(f"line {i}")) for i, row in enumerate(csv_dicts(rows), start=2)]


def _csv_run(row: Mapping[str, str], place: Place) -> ImportedRun:
    run = place.builder("load-test CSV", "benchmark.py")
    for key, cell in row.items():
        found = _CSV_STAT.match(key)
        if found:
            run.stat(_METRICS[found["metric"]], found["stat"], cell, said=key)
    for key, name in (("total_requests", "attempted"), ("success_count", "completed"), ("error_count", "failed")):
        run.number(name, row.get(key), said=key)
    run.number("output_throughput", row.get("throughput_tokens_per_sec"), said="throughput_tokens_per_sec")
    run.number("attempts_per_s", row.get("requests_per_sec"), said="requests_per_sec")
    if run.numbers.get("failed") == 0:
        run.number("request_throughput", row.get("requests_per_sec"), said="requests_per_sec")
    _csv_conditions(run, row)
    return run.build()


def _csv_conditions(run: RunBuilder, row: Mapping[str, str]) -> None:
    run.condition("max_concurrency", row.get("concurrency"))
    run.condition("num_prompts", row.get("total_requests"))
    run.rate(row.get("request_rate", "inf"))
    for key in ("input_tokens_p50", "output_tokens_p50"):
        run.label(key, row.get(key))
    run.note(["output_throughput"], "counts chunks as tokens.")


def read_tables(tables: Iterable[Table], text: str, place: Place) -> list[ImportedRun]:
    """One run a row of every table of results by load."""
    model = _MODEL.search(text)
    steps = {float(step["rate"]): step for step in _STEP.finditer(text)}
    runs: list[ImportedRun] = []
    for table in tables:
        if _is_result(table.header):
            where = place.at(f"line {table.line}")
            builders = [_row_run(table.header, row, where, model and model["model"]) for row in table.rows]
            for run in builders:
                _count_step(run, steps)
            runs += [run.build() for run in builders]
    return runs


def _count_step(run: RunBuilder, steps: Mapping[float, re.Match[str]]) -> None:
    """The table has a share of success; what was printed on the way has the counts."""
    step = steps.get(run.rate_asked or 0.0)
    if step is not None:
        run.number("attempted", step["sent"], said="Sent")
        run.number("completed", step["ok"], said="Success")
        run.label("sent_for_s", step["seconds"])
        _count_share(run)


def _is_result(header: Sequence[str]) -> bool:
    """A load, then percentiles; tables of single requests and of progress have none."""
    stats = [name for name in header if _COLUMN.match(name)]
    return len(stats) > 2 and (header[0] in _LOADS or header[0] in _TARGETS)


def _row_run(header: Sequence[str], row: Sequence[str], place: Place, model: str | None) -> RunBuilder:
    whose = "benchmark.py" if "Total Tok/s" in header else "load_test.py"
    run = place.builder("load-test table", whose)
    run.condition("model", model)
    _load(run, header[0], row[0])
    for name, cell in list(zip(header, row, strict=False))[1:]:
        _take(run, name, cell)
    _count_share(run)
    return run


def _load(run: RunBuilder, column: str, cell: str) -> None:
    if column in _TARGETS:
        run.rate(values.number(cell.lstrip("⚠ ").strip()))
        return
    run.condition(_LOADS[column], cell)
    run.rate("inf")
    if column == "Prompt Tokens":
        run.condition("max_concurrency", 1)


def _take(run: RunBuilder, name: str, cell: str) -> None:
    found = _COLUMN.match(name)
    if found:
        _time(run, name, cell, found)
    elif name in {"OK", "Success"}:
        _of(run, cell)
    elif name == "Count":
        run.number("completed", cell, said=name)
    elif name == "Success%":
        run.label("success_percent", cell)
    elif name == "Actual RPS":
        run.number("achieved_rate", cell, said=name)
    elif name == "Tok/s":
        run.stat("speed_per_request", "mean", cell, said=name)
        run.remark("Tok/s is a mean of single requests' speeds, with tokens guessed from letters: no throughput.")
    elif name == "Total Tok/s":
        run.number("output_throughput", cell, said=name)


def _time(run: RunBuilder, name: str, cell: str, found: re.Match[str]) -> None:
    split = values.split_unit(cell)
    scale = {"ms": 1.0, "s": 1000.0}.get(split[1]) if split else None
    if split is None or scale is None:
        run.leave(name, f"it cannot be read as a time ({cell[:40]!r}).")
        return
    run.stat(_METRICS[found["metric"].lower()], found["stat"], split[0], scale, said=name)


def _of(run: RunBuilder, cell: str) -> None:
    found = _OF.match(cell)
    if found:
        run.number("completed", found["ok"], said="OK")
        run.number("attempted", found["all"], said="OK")
        run.condition("num_prompts", found["all"])


def _count_share(run: RunBuilder) -> None:
    ok, asked = run.numbers.get("completed"), run.numbers.get("attempted")
    if ok is not None and asked is not None and asked >= ok:
        run.number("failed", asked - ok)
