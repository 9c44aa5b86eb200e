"""``withstand audit``: files and folders, ours or anybody's → what may be concluded from them.

A path that cannot be read is a part of the answer, not the end of it; one that is not there is a slip of whoever typed.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from withstand.app.measured import Measured, measured_at
from withstand.app.report import Loader, damage_told
from withstand.audit.across import Work, cross_doubts, work_of_imports, work_of_stages
from withstand.audit.judge import judge_all, judge_file, unreadable
from withstand.audit.shape import Audit, FileAudit, Standing
from withstand.audit.subjects import of_imports, of_stage
from withstand.errors import WithstandError
from withstand.files import distinct_names, is_there, spelled
from withstand.interop.checks import joint_doubts
from withstand.interop.shape import Imported
from withstand.interop.summary import names_of
from withstand.report.numbers import counted
from withstand.runs import RunFolder

GOOD, FALLEN, NOT_KNOWN = 0, 1, 3


class _Read(msgspec.Struct, frozen=True):
    """One path, judged, and what it did."""

    audit: FileAudit
    work: Work | None


def audit_paths(paths: Sequence[Path]) -> Audit:
    """Judge each path, then all together.

    Raises:
        UsageError: there is nothing at one of them.
    """
    for path in paths:
        if not is_there(path):
            RunFolder.open(path)
    everything = [one for path in paths for one in _found(path)]
    found = [one for one in everything if not one.is_nothing]
    names = distinct_names([one.path for one in found])
    read = [_read(one, name) for one, name in zip(found, names, strict=True)]
    files = [one.audit for one in read]
    said = [doubt for file in files for doubt in file.doubts]
    audit = judge_all(files, cross_doubts([one.work for one in read if one.work], said))
    beside = tuple(what for one in everything if one.is_nothing for what in one.left_out)
    return msgspec.structs.replace(audit, left_out=beside)


def exit_code(audit: Audit) -> int:
    """1: a headline does not stand; 3: a file cannot be read, or nothing can be known; else 0."""
    if audit.standing is Standing.FALLS:
        return FALLEN
    unread = any(file.unreadable for file in audit.files)
    return NOT_KNOWN if unread or audit.standing is Standing.UNKNOWN else GOOD


def _found(path: Path) -> list[Measured]:
    try:
        return measured_at(path)
    except WithstandError as e:
        return [Measured(path, unread=e)]


def _read(one: Measured, name: str) -> _Read:
    try:
        opened = one.read()
        return _own(opened, name) if isinstance(opened, RunFolder) else _foreign(opened, name)
    except WithstandError as e:
        return _Read(unreadable(name, spelled(str(e))), None)


def _own(folder: RunFolder, name: str) -> _Read:
    loaded = Loader(charts=False).load(folder)
    summary = loaded.summary
    form = f"withstand, {counted(len(summary.stages), 'stage')}, with facts"
    damage = (damage_told(loaded.damaged_lines),) if loaded.damaged_lines else ()
    told = (*([summary.partial] if summary.partial else []), *damage)
    audit = judge_file(name, form, map(of_stage, summary.stages), summary.doubts, told, noun="stages")
    dataset = folder.manifest.plan.workload.dataset
    return _Read(audit, work_of_stages(name, summary.stages, model=summary.model_id, dataset=dataset))


def _foreign(imported: Imported, name: str) -> _Read:
    runs = imported.runs
    subjects = of_imports(runs, names_of(runs))
    audit = judge_file(name, _form(imported), subjects, joint_doubts(runs), imported.left_out(name))
    return _Read(audit, work_of_imports(name, runs))


def _form(imported: Imported) -> str:
    """``vLLM JSON, 12 runs, aggregates only``."""
    formats = ", ".join(dict.fromkeys(run.source.format for run in imported.runs))
    with_facts = sum(run.facts is not None for run in imported.runs)
    kind = f"{with_facts} with facts" if with_facts else "aggregates only: no interval can be had"
    return f"{formats}, {counted(len(imported.runs), 'run')}, {kind}"
