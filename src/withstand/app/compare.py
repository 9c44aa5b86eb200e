"""Compares what was measured, whoever measured it: what ``withstand compare`` does."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from withstand import clock
from withstand.app.subjects import sides_of
from withstand.compare.build import Options, compare
from withstand.compare.shape import Comparison, Decision
from withstand.errors import UsageError
from withstand.files import write_atomically
from withstand.report.comparison import render
from withstand.runs import TargetsFolder

COMPARISON_FILES: Mapping[str, str] = {"comparison.html": "html", "comparison.json": "json"}
"""Beside the runs that are compared: name → form."""


def compare_paths(arguments: Sequence[str], by: str | None, options: Options) -> Comparison:
    """Each side against the first; of the folder of a plan with several targets, each of them is a side.

    Raises:
        WithstandError: a path cannot be read, or its runs cannot be compared.
    """
    return compare(sides_of([side for argument in arguments for side in _sides_in(argument)], by), options)


def _sides_in(argument: str) -> list[str]:
    if not argument or not TargetsFolder.is_one(Path(argument)):
        return [argument]
    begun = TargetsFolder.open(Path(argument)).begun()
    if not begun:
        raise UsageError(f"{argument} holds nothing that was measured.")
    return [f"{name}={path}" for name, path in begun.items()]


def keep_comparison(folder: Path, comparison: Comparison, decisions: Sequence[Decision]) -> None:
    """Write it beside the runs.

    Raises:
        StorageError: it cannot be written.
    """
    now = clock.utc_iso(clock.anchor().wall_ns)
    for name, form in COMPARISON_FILES.items():
        write_atomically(folder / name, render(comparison, form, decisions=decisions, now=now).encode())
