"""A run's folder while the run goes on."""

from pathlib import Path

import pytest

from withstand import clock
from withstand.app.journal import Journal
from withstand.spec import Plan, Stage

HOUR_NS = 3_600_000_000_000


def set_back(before: clock.Anchor) -> clock.Anchor:
    """As after somebody has set the wall clock back by an hour."""
    return clock.Anchor(wall_ns=before.wall_ns - HOUR_NS, monotonic_ns=before.monotonic_ns)


def test_the_epoch_stays_when_the_wall_clock_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.create(Plan(output_dir=str(tmp_path / "run")), [Stage(name="a")], [])
    before_ns = journal.epoch_ns
    now = clock.anchor
    monkeypatch.setattr(clock, "anchor", lambda: set_back(now()))
    assert journal.epoch_ns == before_ns
    assert abs(before_ns - journal.manifest.anchor.monotonic_ns) < HOUR_NS
