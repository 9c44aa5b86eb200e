"""Fakes that users get too: a truth server, builders of records, certificates for a test."""

from withstand.testing.truth import Schedule, Served, TruthServer

__all__ = ["Schedule", "Served", "TruthServer"]
