"""A plan with several targets → the plan of each. Pure."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from withstand.spec import Plan


def plans_of(plan: Plan, folder: Path) -> Iterator[tuple[str, Plan]]:
    """The plan of each target's run, with its share of the budget."""
    budget_s = None if plan.budget_s is None else plan.budget_s / len(plan.targets)
    for name, target in plan.targets.items():
        own = {"target": target, "targets": {}, "budget_s": budget_s, "output_dir": str(folder / name)}
        yield name, msgspec.structs.replace(plan, **own)
