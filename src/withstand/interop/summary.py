"""An imported run as a stage of a Summary, so that everything that shows or compares runs takes it.

Facts give exact percentiles with intervals; aggregates come over as they stand, with ``facts = false`` and without.
Numbers under names of ``terms`` have no place in a stage: they stay with the run.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

import msgspec

from withstand.interop.checks import joint_doubts, run_doubts
from withstand.interop.checks.words import asked, input_tokens_each
from withstand.interop.derive import fact_samples
from withstand.interop.shape import Facts, ImportedRun, Stats
from withstand.metrics.context import StageContext
from withstand.metrics.latency import NS_PER_MS
from withstand.metrics.quantiles import distribution
from withstand.metrics.series import StageSeries, distribution_series, stage_series
from withstand.metrics.summarize import summarize
from withstand.metrics.summary import Distribution, Load, StageSummary, Summary
from withstand.metrics.tally import by_status, by_text, commonest
from withstand.record import Status, TokensFrom
from withstand.spec import Stage

_ERRORS_SHOWN = 10
_WHOLE_FROM = 1e6
"""Shorter forms of such a rate have an exponent."""
_PLACE_MAX = 32
"""What a tool calls its files by itself is longer, and tells nobody anything."""


def can_be_stage(run: ImportedRun) -> bool:
    """A stage says how many requests it is about; a run that does not know is shown beside."""
    return "completed" in run.numbers


def names_of(runs: Sequence[ImportedRun]) -> list[str]:
    """A short name for each, no two alike: what was measured at which load, and else of how much or where."""
    by_name: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        by_name.setdefault(_name(run), []).append(place)
    names = [""] * len(runs)
    for name, places in by_name.items():
        for place, full in zip(places, _told_apart(name, [runs[place] for place in places]), strict=True):
            names[place] = full
    return names


def _told_apart(name: str, runs: Sequence[ImportedRun]) -> Iterator[str]:
    names = [name] * len(runs)
    how: list[list[str | None]] = [[told(run) for run in runs] for told in (_how_many, _how_long)]
    for given in (*how, _places(runs)):
        if len(set(names)) < len(runs) and len(set(given)) > 1:
            names = [_joined(*pair) for pair in zip(names, given, strict=True)]
    seen: Counter[str] = Counter()
    for short, run in zip(names, runs, strict=True):
        full = short or run.source.position or run.source.tool
        seen[full] += 1
        yield full if seen[full] == 1 else f"{full} #{seen[full]}"


def _joined(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)


def _how_many(run: ImportedRun) -> str | None:
    n = asked(run) or run.numbers.get("completed")
    return f"n-{n:.0f}" if n else None


def _how_long(run: ImportedRun) -> str | None:
    """Its prompts, in tokens."""
    length = run.conditions.input_tokens or input_tokens_each(run)
    return f"in-{length:.0f}" if length else None


def _places(runs: Sequence[ImportedRun]) -> list[str | None]:
    """What their files' paths do not share, as where engines that no file names have folders of their own."""
    paths = [Path(run.source.file).with_suffix("").parts for run in runs]
    head = _alike(paths)
    tails = [path[head:][::-1] for path in paths]
    tail = _alike(tails)
    places = ["/".join(parts[tail:][::-1]) for parts in tails]
    return list(places) if max(map(len, places)) <= _PLACE_MAX else [None] * len(runs)


def _alike(paths: Sequence[Sequence[str]]) -> int:
    """How many first parts all have."""
    return sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False)))


def _name(run: ImportedRun) -> str:
    conditions = run.conditions
    rate = "inf" if conditions.arrivals == "inf" and conditions.max_concurrency is None else conditions.request_rate
    return _joined(
        _who(run),
        None if rate is None else f"rate-{rate if isinstance(rate, str) else _digits(rate)}",
        None if conditions.max_concurrency is None else f"conc-{conditions.max_concurrency}",
        conditions.labels.get("part"),
    )


def _digits(rate: float) -> str:
    return f"{rate:.0f}" if rate >= _WHOLE_FROM else f"{rate:g}"


def _who(run: ImportedRun) -> str | None:
    """What was measured, by its author's label."""
    labels = run.conditions.labels
    return run.conditions.engine or labels.get("heading") or labels.get("strategy")


def summary_of(runs: Sequence[ImportedRun]) -> Summary:
    """All runs that can be stages, with the doubts that they raise singly and together."""
    named = [(name, run) for name, run in zip(names_of(runs), runs, strict=True) if can_be_stage(run)]
    several = len({_who(run) for _, run in named}) > 1
    return summarize(
        [msgspec.structs.replace(stage_of(run, name), phase=_who(run) if several else None) for name, run in named],
        backend=_common([run.conditions.backend for _, run in named]),
        model_id=_common([run.conditions.model for _, run in named]),
        doubts=joint_doubts(runs),
    )


def _common(values: Sequence[str | None]) -> str | None:
    return values[0] if values and len(set(values)) == 1 else None


def stage_of(run: ImportedRun, name: str) -> StageSummary:
    """One run."""
    completed = _count(run, "completed") or 0
    attempted = max(
        run.conditions.num_prompts or _count(run, "attempted") or 0, completed + (_count(run, "failed") or 0)
    )
    spreads, errors = _distributions(run), _errors(run)
    return StageSummary(
        name=name,
        load=_load(run),
        facts=run.facts is not None,
        attempted=attempted,
        completed=completed,
        failed=attempted - completed,
        statuses=_statuses(run),
        errors=commonest(by_text(errors), _ERRORS_SHOWN),
        errors_by_status=by_status(errors, _ERRORS_SHOWN),
        success_rate=completed / attempted if attempted else None,
        duration_s=run.numbers.get("duration_s"),
        achieved_rate=run.numbers.get("achieved_rate"),
        request_throughput=run.numbers.get("request_throughput"),
        request_goodput=run.numbers.get("request_goodput"),
        output_throughput=run.numbers.get("output_throughput"),
        total_token_throughput=run.numbers.get("total_token_throughput"),
        total_input_tokens=_count(run, "total_input_tokens"),
        total_output_tokens=_count(run, "total_output_tokens"),
        tokens_from=_tokens_from(run),
        concurrency_mean=run.numbers.get("concurrency_mean"),
        ttft=spreads["ttft"],
        tpot=spreads["tpot"],
        itl=spreads["itl"],
        e2el=spreads["e2el"],
        response=spreads["response"],
        ttft_scheduled=Distribution(n=0),
        lateness=Distribution(n=0),
        doubts=run_doubts(run),
    )


def _count(run: ImportedRun, name: str) -> int | None:
    value = run.numbers.get(name)
    return None if value is None else int(value)


def _load(run: ImportedRun) -> Load:
    asked = run.conditions
    return Load(
        request_rate=asked.request_rate,
        arrivals=asked.arrivals or ("poisson" if asked.burstiness == 1.0 and asked.request_rate else "unknown"),
        burstiness=asked.burstiness,
        max_concurrency=asked.max_concurrency,
        num_prompts=asked.num_prompts,
    )


def _statuses(run: ImportedRun) -> dict[str, int]:
    """Known only where every request is."""
    if run.facts is None:
        return {}
    return dict(Counter(record.status.value for record in run.facts.records).most_common())


def _errors(run: ImportedRun) -> Counter[tuple[str, str]]:
    records = run.facts.records if run.facts else ()
    return Counter((r.status.value, r.error) for r in records if r.error and r.status is not Status.OK)


def _tokens_from(run: ImportedRun) -> dict[str, int]:
    records = run.facts.records if run.facts else ()
    sources = Counter(r.tokens_from.value for r in records if isinstance(r.tokens_from, TokensFrom))
    return dict(sources.most_common())


def _distributions(run: ImportedRun) -> dict[str, Distribution]:
    samples = fact_samples(run.facts) if run.facts else {}
    computed = {name: distribution(s, NS_PER_MS, independent=name != "itl") for name, s in samples.items()}
    names = ("ttft", "tpot", "itl", "e2el", "response")
    return {name: computed.get(name) or _as_told(run.stats.get(name)) for name in names}


def _as_told(stats: Stats | None) -> Distribution:
    if stats is None:
        return Distribution(n=0)
    return Distribution(
        n=stats.n,
        mean=stats.mean,
        std=stats.std,
        min=stats.min,
        max=stats.max,
        percentiles=dict(stats.percentiles),
    )


def series_of(runs: Sequence[ImportedRun]) -> list[StageSeries]:
    """The charts of the same stages: distributions where there are facts, over time where their instants are known."""
    named = [(name, run) for name, run in zip(names_of(runs), runs, strict=True) if can_be_stage(run)]
    return [_series(name, run.facts) for name, run in named]


def _series(name: str, facts: Facts | None) -> StageSeries:
    if facts is None:
        return StageSeries(name=name)
    if facts.starts_known and facts.gaps_known:
        return stage_series(facts.records, StageContext(stage=Stage(name=name)))
    return distribution_series(name, fact_samples(facts))
