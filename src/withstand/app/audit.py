"""``withstand audit``: files and folders, ours or anybody's → what may be concluded from them.

A path that cannot be read is a part of the answer, not the end of it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from withstand.app.measured import Measured, measured_at
from withstand.app.report import Loader
from withstand.audit.across import Work, cross_doubts, work_of_imports, work_of_stages
from withstand.audit.judge import judge_all, judge_file, unreadable
from withstand.audit.shape import Audit, FileAudit, Standing
from withstand.audit.subjects import of_imports, of_stage
from withstand.errors import WithstandError
from withstand.files import distinct_names
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
    """Judge each path, then all together."""
    read = list(_read_all(paths))
    files = [one.audit for one in read]
    said = [doubt for file in files for doubt in file.doubts]
    return judge_all(files, cross_doubts([one.work for one in read if one.work], said))


def exit_code(audit: Audit) -> int:
    """1: a headline does not stand; 3: a file cannot be read, or nothing can be known; else 0."""
    if audit.standing is Standing.FALLS:
        return FALLEN
    unread = any(file.unreadable for file in audit.files)
    return NOT_KNOWN if unread or audit.standing is Standing.UNKNOWN else GOOD


def _read_all(paths: Sequence[Path]) -> Iterator[_Read]:
    found = [one for path in paths for one in _found(path)]
    names = distinct_names([path for path, _ in found])
    yield from (_read(what, name) for (_, what), name in zip(found, names, strict=True))


def _found(path: Path) -> list[tuple[Path, Measured | WithstandError]]:
    try:
        return [(one.path, one) for one in measured_at(path)]
    except WithstandError as e:
        return [(path, e)]


def _read(what: Measured | WithstandError, name: str) -> _Read:
    try:
        if isinstance(what, WithstandError):
            raise what
        return _foreign(what.imported, name) if what.imported else _own(what.path, name)
    except WithstandError as e:
        return _Read(unreadable(name, str(e)), None)


def _own(path: Path, name: str) -> _Read:
    folder = RunFolder.open(path)
    summary = Loader(charts=False).load(folder).summary
    form = f"withstand, {counted(len(summary.stages), 'stage')}, with facts"
    told = (summary.partial,) if summary.partial else ()
    audit = judge_file(name, form, map(of_stage, summary.stages), summary.doubts, told)
    dataset = folder.manifest.plan.workload.dataset
    return _Read(audit, work_of_stages(name, summary.stages, model=summary.model_id, dataset=dataset))


def _foreign(imported: Imported, name: str) -> _Read:
    runs = imported.runs
    subjects = of_imports(runs, names_of(runs))
    left_out = tuple(f"{refused.position}: {refused.reason}" for refused in imported.refused)
    audit = judge_file(name, _form(imported), subjects, joint_doubts(runs), left_out)
    return _Read(audit, work_of_imports(name, runs))


def _form(imported: Imported) -> str:
    """``vLLM JSON, 12 runs, aggregates only``."""
    formats = ", ".join(dict.fromkeys(run.source.format for run in imported.runs))
    with_facts = sum(run.facts is not None for run in imported.runs)
    kind = f"{with_facts} with facts" if with_facts else "aggregates only: no interval can be had"
    return f"{formats}, {counted(len(imported.runs), 'run')}, {kind}"
