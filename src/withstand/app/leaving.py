"""What is said and done when the user wants to leave a stage: measured answers are waited for, a warm-up's not."""

from withstand.app.screen import Screen
from withstand.load.job import Report
from withstand.load.stage import Order
from withstand.metrics.rounding import counted
from withstand.spec import Stage


class Leaving:
    """Of one stage."""

    def __init__(self, stage: Stage, screen: Screen) -> None:
        self._stage = stage
        self._screen = screen
        self._told = False

    def order(self, report: Report) -> Order | None:
        """In the light of the newest report."""
        if report.interrupts and self._stage.warmup:
            return Order.STOP
        if report.interrupts == 1 and report.in_flight and not self._told:
            self._told = True
            are = "is" if report.in_flight == 1 else "are"
            self._screen.message(
                f"Interrupted: {counted(report.in_flight, 'answer')} {are} waited for. Ctrl-C again stops at once."
            )
        return None
