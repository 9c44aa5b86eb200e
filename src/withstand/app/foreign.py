"""What another tool has written, ready to be shown."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from withstand import __version__
from withstand.app.loaded import Loaded
from withstand.files import spelled
from withstand.interop.shape import Imported, ImportedRun
from withstand.interop.summary import can_be_stage, series_of, summary_of
from withstand.metrics.cost import priced
from withstand.metrics.economy import economy_of, largest_seen
from withstand.report.about import About
from withstand.spec import Price, Slo

_COMPACT = re.compile(r"^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)$")
"""As vLLM writes a date."""


def load_foreign(imported: Imported, path: Path, price: Price | None, *, charts: bool) -> Loaded:
    """What a file or folder held that is not ours.

    Its limits, which it does not tell, are taken to ask for as many good requests as ours do.
    """
    runs = imported.runs
    notices = [f"Left out, {what}" for what in imported.left_out(spelled(path.name))]
    uncounted = sum(not can_be_stage(run) for run in runs)
    if uncounted:
        notices.append(
            f"{uncounted} of {len(runs)} runs do not tell how many requests they are of: shown in text only."
        )
    engines = {run.conditions.engine for run in runs}
    about = About(
        title=spelled(path.name),
        created_utc=_COMPACT.sub(r"\1-\2-\3 \4:\5:\6", runs[0].conditions.date or "") or None,
        version=__version__,
        plan=_alike(runs),
        machine={},
        engine=engines.pop() if len(engines) == 1 else None,
    )
    summary = summary_of(runs)
    stages = tuple(priced(stage, price or Price(), Slo().share) for stage in summary.stages)
    economy = economy_of(stages, price, largest_seen(stages)) if price and len(runs) == 1 else None
    summary = msgspec.structs.replace(summary, stages=stages, economy=economy)
    return Loaded(summary, series_of(runs) if charts else (), about, imported=runs, notices=tuple(notices))


def _alike(runs: Sequence[ImportedRun]) -> dict[str, Any]:
    """The conditions that all runs tell alike, labels among them."""
    told = [_flat(run) for run in runs]
    return {name: value for name, value in told[0].items() if all(other.get(name) == value for other in told[1:])}


def _flat(run: ImportedRun) -> dict[str, Any]:
    conditions: dict[str, Any] = msgspec.to_builtins(run.conditions)
    labels: dict[str, str] = conditions.pop("labels", {})
    return conditions | labels
