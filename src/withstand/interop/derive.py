"""What follows from a run's own numbers or facts, where the file does not say it itself. Each is noted as computed.

A printed rate of 0.00 has no digits left; where count and duration tell it, it is computed again.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from withstand.interop.shape import Facts, ImportedRun, Stats
from withstand.metrics.latency import NS_PER_MS, Latencies, with_timing
from withstand.metrics.quantiles import distribution
from withstand.metrics.sample import Sample
from withstand.record import Record, Status

_RATIOS = {
    "request_throughput": ("completed",),
    "output_throughput": ("total_output_tokens",),
    "total_token_throughput": ("total_input_tokens", "total_output_tokens"),
}
_PRINTED = "printed"
_HALF_A_DIGIT = 0.005
_FEW_DIGITS = 0.05
_NS_PER_S = 1e9


def complete(run: ImportedRun) -> ImportedRun:
    """The same run, with what follows from it."""
    if run.facts:
        run = _from_facts(run, run.facts)
    return _from_numbers(run)


def _from_numbers(run: ImportedRun) -> ImportedRun:
    numbers, notes = dict(run.numbers), dict(run.notes)
    for name, parts in _RATIOS.items():
        rate = _per_second(numbers, parts)
        given = numbers.get(name)
        if rate is None:
            continue
        if given is None:
            numbers[name] = rate
            notes.setdefault(name, f"computed here: {_formula(parts)}.")
        elif _has_few_digits(run, given, rate):
            numbers[name] = rate
            notes[name] = f"printed as {given:.2f}; computed here: {_formula(parts)}."
    return msgspec.structs.replace(run, numbers=numbers, notes=notes)


def _formula(parts: Sequence[str]) -> str:
    count = " + ".join(parts)
    return f"{f'({count})' if len(parts) > 1 else count} / duration_s"


def _per_second(numbers: Mapping[str, float], parts: Iterable[str]) -> float | None:
    duration_s = numbers.get("duration_s")
    counts = [numbers.get(part) for part in parts]
    if not duration_s or None in counts:
        return None
    return sum(count for count in counts if count is not None) / duration_s


def _has_few_digits(run: ImportedRun, given: float, rate: float) -> bool:
    """Rounding has changed it by over 5 %, and by no more than it can."""
    return _PRINTED in run.source.format and _FEW_DIGITS * rate < abs(given - rate) <= _HALF_A_DIGIT * 1.01


def _from_facts(run: ImportedRun, facts: Facts) -> ImportedRun:
    numbers, notes, stats = dict(run.numbers), dict(run.notes), dict(run.stats)
    for name, value in _counted(facts).items():
        if value is not None and name not in numbers:
            numbers[name] = value
            notes.setdefault(name, "computed here from the single requests.")
    for name, computed in fact_stats(facts).items():
        stats.setdefault(name, computed)
    return msgspec.structs.replace(run, numbers=numbers, notes=notes, stats=stats)


def _counted(facts: Facts) -> dict[str, float | None]:
    good = [record for record in facts.records if record.status is Status.OK]
    counts: dict[str, float | None] = {
        "attempted": len(facts.records),
        "completed": len(good),
        "failed": len(facts.records) - len(good),
        "total_input_tokens": _sum(record.prompt_tokens for record in good),
        "total_output_tokens": _sum(record.output_tokens for record in good),
    }
    return counts | (_timed(facts.records) if facts.starts_known else {})


def _sum(values: Iterable[int | None]) -> float | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total or None


def _timed(records: Iterable[Record]) -> dict[str, float | None]:
    spans = [(r.sent_ns, r.end_ns) for r in records if r.sent_ns is not None and r.end_ns is not None]
    if not spans:
        return {}
    duration_s = (max(end for _, end in spans) - min(sent for sent, _ in spans)) / _NS_PER_S
    if not duration_s:
        return {}
    in_flight_s = sum(end - sent for sent, end in spans) / _NS_PER_S
    return {"duration_s": duration_s, "concurrency_mean": in_flight_s / duration_s}


def fact_stats(facts: Facts) -> dict[str, Stats]:
    """The metrics that the facts can tell."""
    return {name: _stats(sample) for name, sample in fact_samples(facts).items()}


def fact_samples(facts: Facts) -> dict[str, Sample]:
    """The values behind them, in ns."""
    latencies = Latencies()
    for record, timing in with_timing(facts.records):
        latencies.add(record, timing)
    samples = {name: sample for name, sample in latencies.by_name().items() if len(sample)}
    if not facts.gaps_known:
        samples.pop("itl", None)
    return samples


def _stats(sample: Sample) -> Stats:
    whole = distribution(sample, NS_PER_MS)
    percentiles = {name: value for name, value in whole.percentiles.items() if value is not None}
    return Stats(n=whole.n, mean=whole.mean, std=whole.std, min=whole.min, max=whole.max, percentiles=percentiles)
