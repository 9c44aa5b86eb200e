"""``withstand run --doctor``: the path is examined before the load, and the diagnosis stays in the run's folder."""

from pathlib import Path

from withstand.app.doctor.examine import Means, examine
from withstand.app.doctor.kept import keep, kept
from withstand.app.doctor.patient import Dose
from withstand.app.screen import Screen
from withstand.doctor.finding import Diagnosis
from withstand.errors import MeasureError
from withstand.report.diagnosis_text import headline
from withstand.spec import Plan

_DOSE = Dose(seconds=30, more="`withstand doctor` takes the time for it.")
"""A run is about its load."""


def stamp(plan: Plan, folder: Path, screen: Screen) -> None:
    """Examine it if that is asked for and was not done before; what cannot be examined can perhaps be measured.

    Raises:
        StorageError: the diagnosis cannot be written.
    """
    if not plan.doctor or kept(folder) is not None:
        return
    screen.message("The path is examined before it is loaded.")
    try:
        diagnosis = examine(plan.target, Means(dose=_DOSE), lambda _: None)
    except MeasureError as e:
        screen.message(f"The path could not be examined: {e}")
        return
    keep(folder, diagnosis)
    _tell(diagnosis, screen)


def _tell(diagnosis: Diagnosis, screen: Screen) -> None:
    screen.message(f"The path: {headline(diagnosis)}.")
    if diagnosis.stopped:
        screen.message(diagnosis.stopped)
    if left_out := [finding.title for finding in diagnosis.findings if finding.cure == _DOSE.more]:
        screen.message(f"Left out after {_DOSE.seconds:g} s, as the path is slow: {', '.join(left_out)}. {_DOSE.more}")
    for finding in diagnosis.bad:
        screen.message(f"{finding.title}: {finding.said}.")
