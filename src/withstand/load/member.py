"""What the run knows of one worker: its job, the last that it said, and whether it is still there."""

import msgspec

from withstand import clock
from withstand.load.job import Job, Report
from withstand.record import Health, Place


class Member:
    """One worker of a fleet. Whoever hears it tells it to this object."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.report = Report()
        self.ready = False
        self.place: Place | None = None
        """Where it runs, if not beside us."""
        self.silent_ns = 0
        """For how long we have listened since its last word."""
        self.ended_ns: int | None = None
        self.why = ""
        """How it ended."""

    def heard(self, report: Report) -> None:
        """It has spoken."""
        self.silent_ns = 0
        if report.ready:
            self.ready = True
        else:
            self.report = report

    def gone(self, why: str) -> None:
        """It has ended, well or not."""
        if self.ended_ns is None:
            self.ended_ns = clock.now_ns()
            self.why = why

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.ended_ns is not None

    @property
    def lost(self) -> bool:
        """Whether it died without a last word."""
        return self.ended and self.report.health is None and self.report.error is None

    def health(self) -> Health:
        """Its own account, or what can be said of a dead one."""
        told = self.report.health or Health(
            worker=self.job.worker, sent=self.report.sent, finished=self.report.done, wall_ns=0, cpu_ns=0, lost=True
        )
        return msgspec.structs.replace(told, place=self.place)
