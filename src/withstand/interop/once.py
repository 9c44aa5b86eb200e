"""One run that was written twice, as text and as JSON, or by two exporters of a tool, is one run.

Two of different formats are the same where they share several numbers and differ in none beyond the printed digits.
The richer one stays; it takes over what only the other has.
"""

from collections.abc import Sequence

import msgspec

from withstand.interop.shape import Conditions, ImportedRun, Stats

_SHARED_MIN = 5
_EXACT = frozenset({"completed", "failed", "attempted", "total_output_tokens", "total_input_tokens"})
_HALVES = {"evalscope JSON", "evalscope percentiles"}
"""Two files of one run that share no number; they lie in one folder."""
_COUNTED = frozenset({"completed", "failed", "attempted"})
"""Of single requests: all else is computed from them here, by our definitions and not by the tool's."""
_TWO_DIGITS = 0.0051
_DIGITS = {"GuideLLM printed table": 0.051}
"""Half of the last digit that a format prints, where that is not the second."""
_RELATIVE = 1e-3


def without_twins(runs: Sequence[ImportedRun]) -> list[ImportedRun]:
    """In the order of the files."""
    if len({_place(run) for run in runs}) < 2:
        return list(runs)
    kept: list[tuple[ImportedRun, dict[str, float]]] = []
    for run in runs:
        flat = _flat(run)
        twin = next((i for i, other in enumerate(kept) if _same(other, (run, flat))), None)
        if twin is None:
            kept.append((run, flat))
        else:
            joined = _joined(kept[twin][0], run)
            kept[twin] = (joined, _flat(joined))
    return [run for run, _ in kept]


def _place(run: ImportedRun) -> tuple[str, str]:
    return run.source.format, run.source.file


def _folder(run: ImportedRun) -> str:
    return run.source.file.rpartition("/")[0]


def _same(a: tuple[ImportedRun, dict[str, float]], b: tuple[ImportedRun, dict[str, float]]) -> bool:
    """Of one format, only exact copies in different files; of two, the same but for the digits."""
    (run, first), (other, second) = a, b
    if _place(run) == _place(other):
        return False
    if {run.source.format, other.source.format} == _HALVES:
        return _folder(run) == _folder(other)
    if run.source.format == other.source.format:
        return bool(second) and second.items() <= first.items()
    shared = first.keys() & second.keys()
    if run.facts or other.facts:
        shared = {name for name in shared if name in _COUNTED or name.startswith("ttft.")}
    digits = max(_DIGITS.get(each.source.format, _TWO_DIGITS) for each in (run, other))
    return len(shared) >= _SHARED_MIN and all(_agree(name, first[name], second[name], digits) for name in shared)


def _own(run: ImportedRun) -> dict[str, float]:
    """The numbers that the file itself says, be it request by request."""
    counted = _COUNTED if run.facts else ()
    return {
        name: n
        for name, n in run.numbers.items()
        if name in counted or not run.notes.get(name, "").startswith("computed here")
    }


def _flat(run: ImportedRun) -> dict[str, float]:
    flat = _own(run)
    for name, stats in run.stats.items():
        flat |= {f"{name}.mean": stats.mean} if stats.mean is not None else {}
        flat |= {f"{name}.{which}": value for which, value in stats.percentiles.items()}
    return flat


def _agree(name: str, a: float, b: float, digits: float) -> bool:
    if name in _EXACT:
        return a == b
    return abs(a - b) <= max(digits, _RELATIVE * max(abs(a), abs(b)))


def _joined(a: ImportedRun, b: ImportedRun) -> ImportedRun:
    kept, other = (b, a) if _weight(b) > _weight(a) else (a, b)
    where = " ".join(part for part in (other.source.file, other.source.position) if part)
    remark = f"The same run stands also in {where} ({other.source.format}); it counts once."
    return msgspec.structs.replace(
        kept,
        conditions=_filled(kept.conditions, other.conditions),
        numbers=_own(other) | kept.numbers,
        stats={name: _filled_stats(kept, other, name) for name in other.stats | kept.stats},
        facts=kept.facts or other.facts,
        remarks=(*kept.remarks, remark),
    )


def _filled_stats(kept: ImportedRun, other: ImportedRun, name: str) -> Stats:
    if name not in kept.stats or name not in other.stats:
        return kept.stats[name] if name in kept.stats else other.stats[name]
    ours, theirs = kept.stats[name], other.stats[name]
    missing = {f: getattr(theirs, f) for f in ("n", "mean", "std", "min", "max") if getattr(ours, f) is None}
    return msgspec.structs.replace(ours, percentiles=theirs.percentiles | ours.percentiles, **missing)


def _weight(run: ImportedRun) -> tuple[bool, int]:
    """Aggregates of a tool before records alone, JSON before print: more numbers."""
    return ("printed" not in run.source.format and "CSV" not in run.source.format, len(_flat(run)))


def _filled(kept: Conditions, other: Conditions) -> Conditions:
    missing = {
        name: theirs
        for name in kept.__struct_fields__
        if name != "labels" and getattr(kept, name) is None and (theirs := getattr(other, name)) is not None
    }
    return msgspec.structs.replace(kept, labels=other.labels | kept.labels, **missing)
