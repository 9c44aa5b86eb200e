"""From run folders to the parameters of a simulated engine: what ``withstand fit`` does."""

from collections.abc import Sequence
from pathlib import Path

from withstand.errors import MeasureError, UsageError
from withstand.runs import RunFolder, RunState, TargetsFolder
from withstand.sim.fit import Fit, fit
from withstand.sim.rows import Heard, heard
from withstand.spec.arrivals import Inf


def fitted_runs(paths: Sequence[Path]) -> Fit:
    """Of all their stages together; they are taken to be of one engine.

    Raises:
        UsageError: a path is no run folder, or they are of different models.
        MeasureError: the runs cannot tell, or are damaged.
    """
    for path in paths:
        _refuse_several(path)
    folders = [RunFolder.open(path) for path in paths]
    models = {folder.manifest.model for folder in folders}
    if len(models) > 1:
        names = ", ".join(sorted(str(model) for model in models))
        raise MeasureError(f"These runs are of different models ({names}); fit those of one engine.")
    stages: dict[str, list[Heard]] = {}
    users: dict[str, int] = {}
    for path, folder in zip(paths, folders, strict=True):
        base = f"{path.name}/" if len(paths) > 1 else ""
        stages |= {f"{base}{name}": found for name, found in _stages(folder).items()}
        users |= {f"{base}{name}": count for name, count in _users(folder).items()}
        if folder.damaged_lines:
            raise MeasureError(f"Records of {path} are damaged, and nobody knows what they told; measure again.")
    # The clocks of several runs have nothing in common, so what was seen of the server is of the one run alone.
    samples = folders[0].samples() if len(folders) == 1 else []
    return fit(_apart(stages), [sample for sample in samples if sample.engine], users=users)


def _refuse_several(path: Path) -> None:
    """A plan's targets are different engines, as a rule: which of them is meant, the user has to say."""
    if not TargetsFolder.is_one(path):
        return
    begun = [str(run) for run in TargetsFolder.open(path).begun().values()]
    told = f"choose those of one engine: {', '.join(begun)}" if begun else "none has begun yet"
    raise UsageError(f"{path} holds a run for each of its targets; {told}.")


def _stages(folder: RunFolder) -> dict[str, list[Heard]]:
    names = {
        index: entry.name
        for index, entry in folder.manifest.in_order()
        if entry.state is RunState.DONE and not entry.stage.warmup
    }
    found: dict[str, list[Heard]] = {name: [] for name in names.values()}
    for record in folder.records():
        answer = heard(record) if record.stage in names else None
        if answer is not None:
            found[names[record.stage]].append(answer)
    return {name: answers for name, answers in found.items() if answers}


def _users(folder: RunFolder) -> dict[str, int]:
    """Of the stages in which each answer is followed by a request."""
    stages = [(entry.name, entry.stage) for _, entry in folder.manifest.in_order()]
    return {n: s.max_concurrency for n, s in stages if s.max_concurrency and isinstance(s.arrivals, Inf)}


def _apart(stages: dict[str, list[Heard]]) -> dict[str, list[Heard]]:
    if not stages:
        raise MeasureError("No streamed answer in these runs tells its tokens; measure with a server that counts them.")
    return stages
