"""evalscope perf: a summary of ``Key | Value`` and percentiles, printed or as its two JSON files.

Until 1.x in seconds, of which four decimals are a tenth of a ms: its ITL and TPOT have two or three digits at best.
Since then under other names, and in ms where the name says so. A throughput of 0 is one that it did not measure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from withstand.interop import values
from withstand.interop.build import RunBuilder
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place
from withstand.interop.tables import Table

_NUMBERS = {
    "time taken for tests (s)": "duration_s",
    "test duration (s)": "duration_s",
    "total requests": "attempted",
    "succeed requests": "completed",
    "success requests": "completed",
    "failed requests": "failed",
    "output token throughput (tok/s)": "output_throughput",
    "throughput(average tokens/s)": "output_throughput",
    "output throughput (tok/s)": "output_throughput",
    "total token throughput (tok/s)": "total_token_throughput",
    "total throughput (tok/s)": "total_token_throughput",
    "input throughput (tok/s)": "input_throughput",
    "request throughput (req/s)": "request_throughput",
    "req throughput (req/s)": "request_throughput",
    "average qps": "request_throughput",
    "average input tokens per request": "mean_input_tokens",
    "avg input tokens": "mean_input_tokens",
    "average output tokens per request": "mean_output_tokens",
    "avg output tokens": "mean_output_tokens",
}
_MEANS = {
    "average latency (s)": "e2el", "avg latency (s)": "e2el",
    "average time to first token (s)": "ttft", "avg ttft (ms)": "ttft",
    "average time per output token (s)": "tpot", "avg tpot (ms)": "tpot",
    "average inter-token latency (s)": "itl", "avg itl (ms)": "itl",
}  # fmt: skip
_COLUMNS = {
    "ttft (s)": "ttft", "itl (s)": "itl", "tpot (s)": "tpot", "latency (s)": "e2el", "ttft (ms)": "ttft",
    "itl (ms)": "itl", "tpot (ms)": "tpot",
}  # fmt: skip
_KNOWN_BY = (
    {"time taken for tests (s)", "succeed requests"},
    {"test duration (s)", "success requests"},
    {"test duration (s)", "total / success / failed"},
)
_SUMMARIES = (["key", "value"], ["metric", "value"])
_SHARES = ("attempted", "completed", "failed")
_PERCENT = re.compile(r"^\s*(\d{1,3}(?:\.\d+)?)\s*%\s*$")
_UNLIMITED = "-1"


def recognises(value: Mapping[str, Any]) -> bool:
    """``benchmark_summary.json``."""
    keys = {key.lower().strip() for key in value}
    return any(needed <= keys for needed in _KNOWN_BY)


def recognises_percentiles(value: Sequence[Any]) -> bool:
    """``benchmark_percentile.json``."""
    return bool(value) and all(isinstance(item, Mapping) and "Percentiles" in item for item in value)


def recognises_columns(value: Mapping[str, Any]) -> bool:
    """The same as one list a column."""
    return isinstance(value.get("Percentiles"), list) and any(key.lower() in _COLUMNS for key in value)


def read_columns(value: Mapping[str, Any], place: Place) -> list[ImportedRun]:
    """The percentiles alone, by column."""
    columns = {key: column for key, column in value.items() if isinstance(column, list)}
    return read_percentiles(
        [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=False)], place
    )


def read(value: Mapping[str, Any], place: Place) -> list[ImportedRun]:
    """One summary."""
    run = place.builder("evalscope JSON", "evalscope")
    _summary(run, value.items())
    return [run.build()]


def read_percentiles(value: Sequence[Mapping[str, Any]], place: Place) -> list[ImportedRun]:
    """The percentiles alone."""
    run = place.builder("evalscope percentiles", "evalscope")
    _percentiles(run, value)
    return [run.build()]


def read_tables(tables: Iterable[Table], place: Place) -> list[ImportedRun]:
    """A printed summary opens a run; the percentiles below belong to it."""
    runs: list[RunBuilder] = []
    for table in tables:
        names = [name.lower() for name in table.header]
        if names in _SUMMARIES and recognises({row[0]: None for row in table.rows if row}):
            run = place.at(f"line {table.line}").builder("evalscope printed table", "evalscope")
            _summary(run, [(row[0], row[1]) for row in table.rows if len(row) > 1])
            runs.append(run)
        elif runs and names[0] == "percentiles":
            _percentiles(runs[-1], table.dicts())
        elif runs and names[0] == "metric" and all(map(_PERCENT.match, names[1:])):
            _percentiles(runs[-1], _turned(table))
    return [run.build() for run in runs]


def _turned(table: Table) -> list[dict[str, str]]:
    """Newer ones print a metric a row."""
    metrics = [row[0] for row in table.rows]
    columns = zip(*(row[1:] for row in table.rows), strict=False)
    return [
        {"Percentiles": percent, **dict(zip(metrics, column, strict=True))}
        for percent, column in zip(table.header[1:], columns, strict=False)
    ]


def _summary(run: RunBuilder, pairs: Iterable[tuple[str, Any]]) -> None:
    for key, given in pairs:
        name = key.lower().strip()
        if name in _NUMBERS and not (name.endswith("(tok/s)") and values.number(given) == 0):
            run.number(_NUMBERS[name], given, said=key)
        elif name in _MEANS:
            run.stat(_MEANS[name], "mean", given, _to_ms(name), said=key)
        elif name in {"number of concurrency", "concurrency"}:
            run.condition("max_concurrency", given)
        elif name == "request rate (req/s)":
            run.rate("inf" if str(given).strip() in {_UNLIMITED, "-1.0"} else given)
        elif name == "model":
            run.condition("model", given)
        elif name == "total / success / failed":
            for count, part in zip(_SHARES, str(given).split("/"), strict=False):
                run.number(count, part, said=key)
    run.note(["tpot", "itl"], "printed to a tenth of a ms by versions that have seconds.")


def _to_ms(name: str) -> float:
    return 1.0 if name.endswith("(ms)") else 1000.0


def _percentiles(run: RunBuilder, rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        percent = _PERCENT.match(str(row.get("Percentiles", "")))
        for key, given in row.items():
            name = _COLUMNS.get(key.lower())
            if percent and name:
                run.stat(name, f"p{percent[1]}", given, _to_ms(key.lower()), said=f"{key} at {percent[0].strip()}")
