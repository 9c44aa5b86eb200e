"""The standard plan on a bare laptop, in the minutes given: with the embedded engine, which answers without chance."""

from pathlib import Path

import msgspec

from withstand.app.budget import of_length
from withstand.app.plans import ready_made
from withstand.app.run import run
from withstand.app.screen import Outcome, Screen
from withstand.spec import Target, parse_plan


def demo(*, minutes: float, output_dir: Path | None, screen: Screen) -> Outcome:
    """Measure the embedded engine within ``minutes``, once engine and model are there.

    Raises:
        WithstandError: it does not come up, or the time is too short for the plan.
    """
    plan = msgspec.structs.replace(
        of_length(parse_plan(ready_made("standard")), minutes * 60),
        target=Target(extra_body={"temperature": 0}),
        output_dir=str(output_dir) if output_dir else None,
    )
    return run(plan, argv=["demo"], screen=screen)
