"""What other tools' files hold beyond a summary: origin, metrics of other definitions, what was left out and why.

Plain text. Everything in it came from strangers' files: control characters are taken out.
"""

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from withstand.interop.shape import ImportedRun, Stats
from withstand.interop.summary import can_be_stage, names_of
from withstand.interop.terms import TERMS, unit_of
from withstand.interop.values import plain
from withstand.report.numbers import counted, number

_SHOWN_MAX = 12
_HANGING = 2
_IN_A_STAGE = frozenset({"attempted", "completed", "failed", "total_input_tokens", "total_output_tokens", "incomplete"})


def imported_text(runs: Sequence[ImportedRun], width: int) -> str:
    """All of it, no line longer than ``width``, with a newline at its end."""
    names = names_of(runs)
    named = list(zip(names, runs, strict=True))
    parts = [
        _origins(runs),
        _uncounted(named),
        _others(named),
        _section("Read as defined by their tools, which is not quite ours", _notes(named)),
        _section("Left out", _left_out(named)),
        _section("Remarks", _remarks(named)),
    ]
    lines = "\n\n".join(part for part in parts if part).split("\n")
    return "".join(f"{_wrapped(line, width)}\n" for line in lines)


def _wrapped(line: str, width: int) -> str:
    """What goes on stands further in than its beginning."""
    margin = " " * (len(line) - len(line.lstrip()) + _HANGING)
    return textwrap.fill(line, width, subsequent_indent=margin, break_on_hyphens=False) if len(line) > width else line


def _origins(runs: Sequence[ImportedRun]) -> str:
    lines = []
    for (file, form), group in groupby(runs, key=lambda run: (run.source.file, run.source.format)):
        of_file = list(group)
        version = of_file[0].source.tool_version
        facts = sum(run.facts is not None for run in of_file)
        kind = "aggregates: no intervals can be told" if not facts else f"with the facts of {counted(facts, 'run')}"
        whose = f"{form} {version}" if version else form
        lines.append(f"{plain(file)}: {plain(whose)}, {counted(len(of_file), 'run')}, {kind}")
    return "\n".join(lines)


def _uncounted(named: Iterable[tuple[str, ImportedRun]]) -> str:
    """Runs that are no stage: their numbers are shown here or nowhere."""
    lines = [f"  {plain(name)}: {_values(run)}" for name, run in named if not can_be_stage(run)]
    return "\n".join(["Without a count of requests:", *lines]) if lines else ""


def _values(run: ImportedRun) -> str:
    shown = [f"{name} {_with_unit(name, value)}" for name, value in run.numbers.items()]
    return ", ".join([*shown, *(f"{name} {_stats(name, stats)}" for name, stats in run.stats.items())])


def _with_unit(name: str, value: float) -> str:
    return f"{number(value)} {unit_of(name)}"


def _stats(name: str, stats: Stats) -> str:
    told = {"mean": stats.mean, **{p: stats.percentiles.get(p) for p in ("p50", "p90", "p99")}}
    shown = [f"{which} {number(value)}" for which, value in told.items() if value is not None]
    return f"{', '.join(shown)} {unit_of(name)}"


def _others(named: Sequence[tuple[str, ImportedRun]]) -> str:
    """Metrics of another definition, each with it."""
    lines: list[str] = []
    for term, definition in TERMS.items():
        values = [(name, _other(run, term)) for name, run in named]
        known = [f"{plain(name)}: {value}" for name, value in values if value]
        if term not in _IN_A_STAGE and known:
            lines.append(f"  {term}: {definition.definition}")
            lines += [f"      {line}" for line in _few(known)]
    return "\n".join(["Metrics that are not ours:", *lines]) if lines else ""


def _other(run: ImportedRun, term: str) -> str | None:
    if term in run.numbers:
        return _with_unit(term, run.numbers[term])
    return _stats(term, run.stats[term]) if term in run.stats else None


def _few(lines: Sequence[str]) -> list[str]:
    more = len(lines) - _SHOWN_MAX
    return [*lines[:_SHOWN_MAX], f"… and {more} more"] if more > 0 else list(lines)


def _notes(named: Iterable[tuple[str, ImportedRun]]) -> dict[str, list[str]]:
    said: dict[str, list[str]] = defaultdict(list)
    for name, run in named:
        for metric, note in run.notes.items():
            said[f"{metric}: {note}"].append(name)
    return said


def _left_out(named: Iterable[tuple[str, ImportedRun]]) -> dict[str, list[str]]:
    said: dict[str, list[str]] = defaultdict(list)
    for name, run in named:
        for left in run.left_out:
            said[f"{left.what}: {left.reason}"].append(name)
    return said


def _remarks(named: Iterable[tuple[str, ImportedRun]]) -> dict[str, list[str]]:
    said: dict[str, list[str]] = defaultdict(list)
    for name, run in named:
        for remark in run.remarks:
            said[remark].append(name)
    return said


def _section(title: str, said: Mapping[str, Sequence[str]]) -> str:
    """Each sentence once, with the runs that it is about."""
    return "\n".join([f"{title}:", *_few(list(_sentences(said)))]) if said else ""


def _sentences(said: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for sentence, names in said.items():
        where = plain(names[0]) if len(names) == 1 else counted(len(names), "run")
        yield f"  {plain(sentence)} ({where})"
