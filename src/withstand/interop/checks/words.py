"""How the checks look up a run's numbers, and how their sentences write them."""

from withstand.interop.shape import ImportedRun

MS_PER_S = 1000.0


def stat(run: ImportedRun, name: str, which: str = "mean") -> float | None:
    """A statistic: ``mean``, ``std``, ``p50`` and the like."""
    stats = run.stats.get(name)
    if stats is None:
        return None
    return getattr(stats, which) if which in {"mean", "std", "min", "max"} else stats.percentiles.get(which)


def typical(run: ImportedRun, name: str) -> float | None:
    """The mean, else the median."""
    mean = stat(run, name)
    return mean if mean is not None else stat(run, name, "p50")


def said(value: float) -> str:
    """``1,015``, ``28.45``, ``0.0061``: whole numbers whole, others with three or four digits."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{value:,.0f}"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2
    return f"{value:,.{digits}f}" if abs(value) >= 1 else f"{value:.3g}"


def asked(run: ImportedRun) -> float | None:
    """Requests that were to be sent."""
    prompts = run.conditions.num_prompts
    return float(prompts) if prompts is not None else run.numbers.get("attempted")


def input_tokens_each(run: ImportedRun) -> float | None:
    """Mean prompt length, as counted; no prompt is empty, so that 0 says that nobody counted."""
    return _each(run, "input_tokens") or None


def series_of(run: ImportedRun) -> str | None:
    """What a run's neighbours have in common with it: the engine, else the heading that they stand under."""
    return run.conditions.engine or run.conditions.labels.get("heading")


def output_tokens_each(run: ImportedRun) -> float | None:
    """Mean answer length, as counted."""
    return _each(run, "output_tokens")


def _each(run: ImportedRun, what: str) -> float | None:
    mean, total, completed = (run.numbers.get(n) for n in (f"mean_{what}", f"total_{what}", "completed"))
    share = total / completed if total is not None and completed else None
    return mean if mean or share is None else share


def latency_ms(run: ImportedRun) -> float | None:
    """Mean end-to-end latency, given or put together from its parts."""
    whole = stat(run, "e2el")
    if whole is not None:
        return whole
    ttft, tpot, n = stat(run, "ttft"), stat(run, "tpot"), output_tokens_each(run)
    return ttft + tpot * (n - 1) if ttft is not None and tpot is not None and n else None
