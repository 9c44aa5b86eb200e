"""An endpoint whose tokens come on an exact schedule, and that says afterwards what it really wrote, and when.

It shares with what it proves nothing but the clock and the poller: neither framing nor arithmetic.
"""

from withstand.testing.truth.behaviours import BEHAVIOURS, tally
from withstand.testing.truth.config import Config
from withstand.testing.truth.process import TruthServer
from withstand.testing.truth.right import Right, RightLog, RightRun, Times, expected, expected_run, right_log
from withstand.testing.truth.schedule import Schedule
from withstand.testing.truth.served import Served

__all__ = [
    "BEHAVIOURS",
    "Config",
    "Right",
    "RightLog",
    "RightRun",
    "Schedule",
    "Served",
    "Times",
    "TruthServer",
    "expected",
    "expected_run",
    "right_log",
    "tally",
]
