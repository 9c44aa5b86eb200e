"""From run folders to the parameters of a simulated engine: what ``withstand fit`` does."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from withstand.errors import MeasureError, UsageError
from withstand.runs import RunFolder, RunState, TargetsFolder, TurnsFolder
from withstand.sim.fit import Fit, fit
from withstand.sim.rows import Heard, heard
from withstand.spec import Inf, Workload
from withstand.workload.dataset import read_options
from withstand.workload.datasets import random

_CHAT = "openai-chat"
_BESIDE_TOKENS = 4
"""Lengths that differ more are not those of a template."""


def fitted_runs(paths: Sequence[Path]) -> Fit:
    """Of all their stages together; they are taken to be of one engine.

    Raises:
        UsageError: a path is no run folder, or they are of different models.
        MeasureError: the runs cannot tell, or are damaged.
    """
    for path in paths:
        _refuse_several(path)
    names = _names(paths)
    folders = [RunFolder.open(path) for path in paths]
    models = {folder.manifest.model for folder in folders}
    if len(models) > 1:
        several = ", ".join(sorted(str(model) for model in models))
        raise MeasureError(f"These runs are of different models ({several}); fit those of one engine.")
    stages: dict[str, list[Heard]] = {}
    beyond: list[int] = []
    users: dict[str, int] = {}
    for path, told, folder in zip(paths, names, folders, strict=True):
        base = f"{told}/" if len(paths) > 1 else ""
        found, records = _stages(folder)
        stages |= {f"{base}{name}": answers for name, answers in found.items()}
        beyond += _beyond_asked(folder, found)
        users |= {f"{base}{name}": count for name, count in _users(folder).items()}
        if folder.damaged_lines:
            raise MeasureError(f"Records of {path} are damaged, and nobody knows what they told; measure again.")
        if not records:
            raise MeasureError(f"{path} has no records: its records.jsonl.gz is missing or empty. Copy it too.")
    # The clocks of several runs have nothing in common, so what was seen of the server is of the one run alone.
    samples = folders[0].samples() if len(folders) == 1 else []
    if folders[0].damaged_samples:
        raise MeasureError(
            f"{paths[0]}: its samples of the server's side are damaged. Take samples.jsonl.gz away, and the fit goes "
            "without them."
        )
    template_tokens = round(median(beyond)) if beyond and max(beyond) - min(beyond) <= _BESIDE_TOKENS else 0
    return fit(
        _apart(stages),
        [sample for sample in samples if sample.engine],
        users=users,
        template_tokens=max(0, template_tokens),
    )


def _names(paths: Sequence[Path]) -> list[str]:
    """What a run is called beside the others: its folder's name, or its path where two have the same.

    Raises:
        UsageError: one is given twice.
    """
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("A run is given twice; give each folder once.")
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _refuse_several(path: Path) -> None:
    """A plan's targets are different engines, as a rule, and so are two sides: the user has to say which is meant."""
    if TargetsFolder.is_one(path):
        begun, of_what = [str(run) for run in TargetsFolder.open(path).begun().values()], "its targets"
    elif TurnsFolder.is_one(path):
        begun, of_what = [f"{path / 'a'}-*", f"{path / 'b'}-*"], "the blocks of two sides"
    else:
        return
    told = f"choose those of one engine: {', '.join(begun)}" if begun else "none has begun yet"
    raise UsageError(f"{path} holds a run for each of {of_what}; {told}.")


def _stages(folder: RunFolder) -> tuple[dict[str, list[Heard]], int]:
    """Usable answers by stage, and how many records there are at all."""
    names = {
        index: entry.name
        for index, entry in folder.manifest.in_order()
        if entry.state is RunState.DONE and not entry.stage.warmup
    }
    found: dict[str, list[Heard]] = {name: [] for name in names.values()}
    records = 0
    for record in folder.records():
        records += 1
        answer = heard(record) if record.stage in names else None
        if answer is not None:
            found[names[record.stage]].append(answer)
    return {name: answers for name, answers in found.items() if answers}, records


def _beyond_asked(folder: RunFolder, found: Mapping[str, Sequence[Heard]]) -> list[int]:
    """By how much prompts were longer than asked, where the plan tells how long they were to be."""
    if folder.manifest.plan.target.backend != _CHAT:
        return []
    beyond = []
    for _, entry in folder.manifest.in_order():
        workload = entry.stage.workload or folder.manifest.plan.workload
        if workload.dataset == Workload().dataset:
            options = read_options(workload, random.Options)
            asked = options.prefix_len + options.input_len
            exact = [] if options.range_ratio else found.get(entry.name, [])
            beyond += [answer.whole_prompt_tokens - asked for answer in exact]
    return beyond


def _users(folder: RunFolder) -> dict[str, int]:
    """Of the stages in which each answer is followed by a request."""
    stages = [(entry.name, entry.stage) for _, entry in folder.manifest.in_order()]
    return {n: s.max_concurrency for n, s in stages if s.max_concurrency and isinstance(s.arrivals, Inf)}


def _apart(stages: dict[str, list[Heard]]) -> dict[str, list[Heard]]:
    if not stages:
        raise MeasureError("No streamed answer in these runs tells its tokens; measure with a server that counts them.")
    return stages
