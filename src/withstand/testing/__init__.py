"""Fakes that users get too: a truth server, builders of records, certificates for a test."""

from withstand.testing.truth import BEHAVIOURS, Right, RightRun, Schedule, Served, TruthServer, expected, expected_run

__all__ = ["BEHAVIOURS", "Right", "RightRun", "Schedule", "Served", "TruthServer", "expected", "expected_run"]
