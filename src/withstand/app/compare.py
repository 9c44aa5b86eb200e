"""Compares what was measured, whoever measured it: what ``withstand compare`` does."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from withstand import clock
from withstand.app.prices import prices_of
from withstand.app.subjects import paths_of, sides_in_turn, sides_of
from withstand.compare.build import Options, compare
from withstand.compare.decision import decide
from withstand.compare.run import ComparedSide
from withstand.compare.shape import Comparison, Decision
from withstand.errors import UsageError
from withstand.files import write_atomically
from withstand.report.comparison import render
from withstand.runs import TargetsFolder, TurnsFolder
from withstand.spec import TokenPrice

COMPARISON_FILES: Mapping[str, str] = {"comparison.html": "html", "comparison.json": "json"}
"""Beside the runs that are compared: name → form."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """All sides against the first of them."""

    comparison: Comparison
    decisions: tuple[Decision, ...]


def compare_paths(arguments: Sequence[str], by: str | None, options: Options) -> Comparison:
    """Each side against the first; a folder of several targets holds all its sides, and so does one of ``ab``.

    Raises:
        WithstandError: a path cannot be read, or its runs cannot be compared.
    """
    return compare(_sides(arguments, by), options)


def _sides(arguments: Sequence[str], by: str | None) -> list[ComparedSide]:
    in_turn = [path for argument in arguments for path in paths_of(argument) if TurnsFolder.is_one(path)]
    if not in_turn:
        return sides_of([side for argument in arguments for side in _sides_in(argument)], by)
    if len(arguments) > 1 or by or Path(arguments[0]) != in_turn[0]:
        raise UsageError(f"{in_turn[0]} holds two sides that were measured in turn; compare it by itself.")
    return sides_in_turn(TurnsFolder.open(in_turn[0]))


def _sides_in(argument: str) -> list[str]:
    if not argument or not TargetsFolder.is_one(Path(argument)):
        return [argument]
    begun = TargetsFolder.open(Path(argument)).begun()
    if not begun:
        raise UsageError(f"{argument} holds nothing that was measured.")
    return [f"{name}={path}" for name, path in begun.items()]


def compared_and_kept(folder: Path, *, force: bool = False) -> Compared:
    """The sides that a folder holds, with the prices that their runs were told; written beside them.

    Raises:
        WithstandError: they cannot be compared, or it cannot be written.
    """
    comparison = compare_paths([str(folder)], None, Options(force=force))
    prices = prices_of((), {side.label: side.price_per_hour for side in comparison.sides})
    decisions = tuple(decide(comparison, prices, token_price_in(comparison)))
    _keep(folder, comparison, decisions)
    return Compared(comparison=comparison, decisions=decisions)


def token_price_in(comparison: Comparison) -> TokenPrice | None:
    """What tokens cost elsewhere, as the first side that was told says."""
    return next((side.token_price for side in comparison.sides if side.token_price), None)


def _keep(folder: Path, comparison: Comparison, decisions: Sequence[Decision]) -> None:
    now = clock.utc_iso(clock.anchor().wall_ns)
    for name, form in COMPARISON_FILES.items():
        write_atomically(folder / name, render(comparison, form, decisions=decisions, now=now).encode())
