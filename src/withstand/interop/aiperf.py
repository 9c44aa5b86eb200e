"""AIPerf, and genai-perf before it: aggregates as JSON, CSV or printed tables; per-request records as JSON lines.

Their inter_token_latency is one mean a request, (latency - TTFT) / (tokens - 1): our TPOT. The gaps between chunks
are inter_chunk_latency: our ITL. Units stand beside each number and are believed only where they are known.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from withstand.interop import facts, values
from withstand.interop.build import RunBuilder
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place
from withstand.interop.tables import Table
from withstand.record import Status, TokensFrom

_STATS = {
    "time_to_first_token": "ttft",
    "ttft": "ttft",
    "ttst": "time_to_second_token",
    "time_to_first_output_token": "ttft_output",
    "time_to_second_token": "time_to_second_token",
    "inter_token_latency": "tpot",
    "inter_chunk_latency": "itl",
    "request_latency": "e2el",
    "effective_latency": "effective_latency",
    "output_token_throughput_per_user": "speed_per_request",
    "output_token_throughput_per_request": "speed_per_request",
}
_NUMBERS = {
    "request_throughput": "request_throughput",
    "request_count": "completed",
    "error_request_count": "failed",
    "output_token_throughput": "output_throughput",
    "total_token_throughput": "total_token_throughput",
    "input_token_throughput": "input_throughput",
    "total_isl": "total_input_tokens",
    "total_input_sequence_length": "total_input_tokens",
    "total_osl": "total_output_tokens",
    "benchmark_token_count": "total_output_tokens",
    "total_output_sequence_length": "total_output_tokens",
    "benchmark_duration": "duration_s",
    "effective_concurrency": "concurrency_mean",
    "goodput": "request_goodput",
    "input_sequence_length": "mean_input_tokens",
    "output_sequence_length": "mean_output_tokens",
}
_TO_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "sec": 1e3, "seconds": 1e3, "": 1.0}
_RATE_UNITS = frozenset({"tokens/sec/user", "tokens/sec", "per sec", "tokens/s"})
_TO_S = {"ns": 1e-9, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
_LABEL = re.compile(r"^(?P<name>.*?)\s*(?:\((?P<unit>[^()]*)\))?$")
_NOTES = {
    "tpot": "its inter_token_latency: the whole latency - TTFT over tokens - 1; newer versions take the first "
    "chunk's tokens out.",
    "itl": "its inter_chunk_latency.",
    "output_throughput": "over first send to last response.",
    "effective_latency": "failed requests are in it.",
    "speed_per_request": "newer versions: 1000 / its inter_token_latency, so TTFT is not in it.",
}


def recognises(value: Mapping[str, Any]) -> bool:
    """Metrics by name, each with its unit and average; in the first version one level below."""
    value = values.mapping(value.get("records")) or value
    metrics = [value.get(name) for name in ("request_throughput", "request_latency", "time_to_first_token")]
    return any(isinstance(metric, Mapping) and {"unit", "avg"} <= metric.keys() for metric in metrics)


def read(value: Mapping[str, Any], place: Place) -> list[ImportedRun]:
    """One aggregate export."""
    metrics = values.mapping(value.get("records")) or value
    tool = "AIPerf" if "was_cancelled" in value or "aiperf_version" in value else "genai-perf"
    run = place.builder(f"{tool} JSON", tool, values.text(value.get("aiperf_version")))
    for tag, metric in metrics.items():
        if isinstance(metric, Mapping) and "unit" in metric:
            _take(run, tag, str(metric["unit"]), {k: v for k, v in metric.items() if k != "unit"})
    _conditions(run, value)
    if value.get("was_cancelled") is True:
        run.remark("The run was cancelled: it is shorter than asked.")
    return [_finished(run)]


def _take(run: RunBuilder, tag: str, unit: str, stats: Mapping[str, Any]) -> None:
    if tag in _STATS:
        _take_stat(run, tag, unit.lower(), stats)
    elif tag in _NUMBERS:
        scale = _TO_S.get(unit.lower()) if tag == "benchmark_duration" else 1.0
        if scale is None:
            run.leave(tag, f"its unit is not known here ({unit}).")
        else:
            run.number(_NUMBERS[tag], stats.get("avg"), scale, said=tag)
    elif tag.startswith("adj_"):
        run.leave(tag, "failed requests stand in it as infinitely slow: another definition.")


def _take_stat(run: RunBuilder, tag: str, unit: str, stats: Mapping[str, Any]) -> None:
    scale = 1.0 if unit in _RATE_UNITS else _TO_MS.get(unit)
    if scale is None:
        run.leave(tag, f"its unit is not known here ({unit}).")
        return
    renamed = {{"avg": "mean"}.get(name, name): value for name, value in stats.items()}
    run.of(_STATS[tag], stats.get("count"))
    run.spread(_STATS[tag], renamed, scale, said=tag)


def _conditions(run: RunBuilder, value: Mapping[str, Any]) -> None:
    config = values.mapping(value.get("input_config"))
    endpoint, load = values.mapping(config.get("endpoint")), values.mapping(config.get("loadgen"))
    models = endpoint.get("model_names") or config.get("model_names") or config.get("model") or _model_items(config)
    run.condition("model", models[0] if isinstance(models, list) and models else models)
    run.condition("backend", endpoint.get("type"))
    phase = _main_phase(config)
    for source in (load, phase):
        run.condition("max_concurrency", source.get("concurrency"))
        run.rate(source.get("request_rate", source.get("rate")))
        run.condition("num_prompts", source.get("request_count", source.get("requests")))
    if load.get("concurrency") is not None or phase.get("concurrency") is not None:
        run.rate("inf")
    _prompt(run, values.mapping(values.mapping(config.get("input")).get("prompt")))
    _dataset(run, config.get("datasets"))
    run.condition("dataset", values.mapping(config.get("input")).get("public_dataset"))
    run.condition("date", value.get("start_time"))


def _model_items(config: Mapping[str, Any]) -> Any:
    models = config.get("models")
    items = models.get("items") if isinstance(models, Mapping) else models
    first = items[0] if isinstance(items, list) and items else None
    return first.get("name") if isinstance(first, Mapping) else first


def _main_phase(config: Mapping[str, Any]) -> Mapping[str, Any]:
    phases = config.get("phases")
    if not isinstance(phases, list):
        return {}
    kept = [p for p in phases if isinstance(p, Mapping) and p.get("name") != "warmup" and p.get("kind") != "warmup"]
    return kept[-1] if kept else {}


def _prompt(run: RunBuilder, prompt: Mapping[str, Any]) -> None:
    run.condition("input_tokens", values.mapping(prompt.get("input_tokens")).get("mean"))
    run.condition("output_tokens", values.mapping(prompt.get("output_tokens")).get("mean"))


def _dataset(run: RunBuilder, datasets: object) -> None:
    """Newer versions have a list of them."""
    first = values.mapping(datasets[0]) if isinstance(datasets, list) and datasets else {}
    prompts = values.mapping(first.get("prompts"))
    run.condition("dataset", first.get("type"))
    run.condition("input_tokens", values.mapping(prompts.get("isl")).get("mean"))
    run.condition("output_tokens", values.mapping(prompts.get("osl")).get("mean"))


def warm_ups(manifest: Mapping[str, Any]) -> list[str]:
    """The files of a run's warm-up, as its ``phase_manifest.json`` lists them."""
    phases = manifest.get("phases")
    return [
        str(file)
        for phase in map(values.mapping, phases if isinstance(phases, list) else ())
        for file in (phase.get("metrics_json"), phase.get("metrics_csv"))
        if phase.get("phase_kind") == "warmup" and file
    ]


def _finished(run: RunBuilder) -> ImportedRun:
    for name, definition in _NOTES.items():
        run.note([name], definition)
    return run.build()


# Tables: CSV exports and the printed ones


def recognises_table(header: Sequence[str]) -> bool:
    """``Metric | Statistic``, ``avg`` and more statistics."""
    names = [name.lower() for name in header]
    return len(names) > 2 and names[0] in {"metric", "statistic"} and "avg" in names


def read_csv(rows: Sequence[Sequence[str]], place: Place) -> list[ImportedRun]:
    """A CSV export: tables of statistics, then of single values; what follows them is telemetry."""
    run = place.builder("AIPerf CSV", "AIPerf")
    header: Sequence[str] = ()
    for row in rows:
        if row[0] in {"Metric", "Statistic"}:
            header = ["avg" if name == "Value" else name for name in row]
        elif row[0] == "Endpoint":
            break
        elif len(row) == len(header) or (row is rows[-1] and len(row) < len(header)):
            _take_labelled(run, row[0], dict(zip(header[1:], row[1:], strict=False)))
        elif header:
            run.leave(row[0], f"its {len(row)} cells are not those of the header.")
    return [_finished(run)] if run.has("e2el") or run.has("request_throughput") else []


def read_tables(tables: Iterable[Table], place: Place) -> list[ImportedRun]:
    """Printed tables: each that has a latency opens a run, the others belong to it."""
    runs: list[RunBuilder] = []
    for table in tables:
        if not recognises_table(table.header):
            continue
        tool = "AIPerf" if "aiperf" in table.heading.lower() else "genai-perf"
        run = place.at(f"line {table.line}").builder(f"{tool} printed table", tool)
        for row in table.rows:
            _take_labelled(run, row[0], dict(zip(table.header[1:], row[1:], strict=False)))
        if run.has("e2el") or run.has("ttft"):
            runs.append(run)
    return [_finished(run) for run in runs]


def _take_labelled(run: RunBuilder, label: str, stats: Mapping[str, Any]) -> None:
    """``Time to First Token (ms)`` → the tag that JSON has for it."""
    found = _LABEL.match(" ".join(label.split()))
    assert found
    tag = re.sub(r"\W+", "_", found["name"].lower()).strip("_")
    unit = found["unit"] or ""
    if tag in _STATS and not unit:
        run.leave(label, "it has no unit.")
        return
    _take(run, tag, unit, stats)


# Per-request records


def recognises_record(value: Mapping[str, Any]) -> bool:
    """One line of ``profile_export.jsonl``."""
    return "request_start_ns" in values.mapping(value.get("metadata")) and isinstance(value.get("metrics"), Mapping)


def read_record(value: Mapping[str, Any], place: Place) -> list[ImportedRun]:
    """A file of one line."""
    return read_records([value], place)


def read_records(lines: Sequence[Mapping[str, Any]], place: Place) -> list[ImportedRun]:
    """All lines of one file: one run of facts, without the warm-up."""
    run = place.builder("AIPerf records", "AIPerf")
    kept = [line for line in lines if recognises_record(line) and line["metadata"].get("benchmark_phase") != "warmup"]
    facts.attach(run, [_row(line) for line in kept], gaps_known=True)
    return [_finished(run)]


def _row(line: Mapping[str, Any]) -> facts.Row:
    metadata, metrics = line["metadata"], line["metrics"]
    error = line.get("error")
    told = values.mapping(error).get("message") or error
    cancelled = metadata.get("was_cancelled") is True
    good = not told and not cancelled
    return facts.Row(
        sent_s=values.scaled(metadata.get("request_start_ns"), 1e-9),
        ttft_s=_metric(metrics, "time_to_first_token") if good else None,
        e2el_s=_metric(metrics, "request_latency") if good else None,
        gaps_s=_gaps(metrics) if good else None,
        prompt_tokens=_count(metrics, "input_sequence_length"),
        output_tokens=_count(metrics, "output_sequence_length") if good else None,
        tokens_from=TokensFrom.TOKENIZER if good else None,
        error=facts.error_line(told),
        status=Status.OK if good else Status.CANCELLED if cancelled else facts.status_of(str(told)),
        turn=values.whole(metadata.get("turn_index")) or 0,
    )


def _metric(metrics: Mapping[str, Any], tag: str) -> float | None:
    metric = values.mapping(metrics.get(tag))
    scale = _TO_MS.get(str(metric.get("unit", "ms")).lower())
    return None if scale is None else values.scaled(metric.get("value"), scale / 1000)


def _count(metrics: Mapping[str, Any], tag: str) -> int | None:
    return values.whole(values.mapping(metrics.get(tag)).get("value"))


def _gaps(metrics: Mapping[str, Any]) -> list[float] | None:
    metric = values.mapping(metrics.get("inter_chunk_latency"))
    gaps_ms = facts.seconds_list(metric.get("value"))
    return None if gaps_ms is None else [gap / 1000 for gap in gaps_ms]
