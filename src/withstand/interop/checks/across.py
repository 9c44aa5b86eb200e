"""Doubts that only several runs raise together."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from withstand.interop.checks.words import asked, said, series_of
from withstand.interop.shape import ImportedRun
from withstand.metrics.doubts import Doubt, DoubtKind

_WORK_WITHIN = 0.05
_FEW_LOST = 3


def client_limit(runs: Sequence[ImportedRun]) -> Doubt | None:
    """Different engines do not lose the same number by chance."""
    lost: Counter[tuple[float, float]] = Counter()
    engines: dict[tuple[float, float], set[str | None]] = defaultdict(set)
    for run in runs:
        wanted, completed = asked(run), run.numbers.get("completed")
        if wanted and completed is not None and wanted - completed >= _FEW_LOST:
            lost[wanted, completed] += 1
            engines[wanted, completed].add(series_of(run))
    found = [key for key, times in lost.items() if times > 1 and len(engines[key]) > 1]
    if not found:
        return None
    wanted, completed = found[0]
    return Doubt(
        DoubtKind.CLIENT_LIMIT,
        f"{' and '.join(sorted(str(engine) for engine in engines[found[0]] if engine))} completed {said(completed)} of "
        f"{said(wanted)} requests each: no two engines lose the same {said(wanted - completed)} by chance. What ended "
        "them is most likely the client's own limit, such as its open files.",
        "Raise the client's limit of open files and run both again; nothing follows from these rows.",
        blocking=True,
    )


def other_work(runs: Sequence[ImportedRun]) -> Doubt | None:
    """Runs that look alike, and generated amounts of text that do not."""
    work = [(run, run.numbers.get("retokenized_output_tokens")) for run in runs]
    known = [(run, tokens) for run, tokens in work if tokens and _alike(run, runs[0])]
    if len(known) < 2 or len(known) < len(runs):
        return None
    amounts = [tokens for _, tokens in known if tokens]
    low, high = min(amounts), max(amounts)
    if high <= low * (1 + _WORK_WITHIN):
        return None
    told = ", ".join(f"{said(tokens)}{_named(run)}" for run, tokens in known if tokens)
    return Doubt(
        DoubtKind.LENGTHS_DIFFER,
        f"The same prompts gave {told} tokens of text; {said(high)} / {said(low)} = {high / low:.2f}. The runs did not "
        "do the same work: none is so many times faster than another.",
        "Compare TTFT and ITL only, or measure again with answers of one length.",
        blocking=True,
    )


def _named(run: ImportedRun) -> str:
    name = series_of(run) or run.source.position
    return f" ({name})" if name else ""


def _alike(run: ImportedRun, other: ImportedRun) -> bool:
    same = ("completed", "total_input_tokens")
    return all(run.numbers.get(name) == other.numbers.get(name) for name in same)


RULES = (client_limit, other_work)
