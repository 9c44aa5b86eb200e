"""Builders of calibrations: steps of a client that costs so much a token, and what was kept of them."""

from typing import Any

from withstand.app.machine import client_facts
from withstand.metrics.calibration import Calibration, Load, Step
from withstand.record import Clock

US = 1_000


def make_step(rate: float, *, streamed: bool = True, **facts: Any) -> Step:
    """A good step at a tenth of the core; ``facts`` replace any field."""
    fields: dict[str, Any] = {
        "load": Load(streamed=streamed, rate=rate, tokens=64 if streamed else 1, gap_s=0.01 * streamed, seconds=1.0),
        "clock": Clock.KERNEL,
        "requests": 100,
        "failed": 0,
        "events": 6400,
        "cpu_share": 0.1,
        "lag_p99_ns": 200 * US,
        "itl_error_p99_ns": 3 * US if streamed else None,
        "ttft_error_p99_ns": 12 * US if streamed else None,
        "late_p99_ns": 80 * US,
        "unseen_share": 0.0,
        "server_share": 0.05,
        "server_late_p99_ns": 30 * US,
    }
    return Step(**fields | facts)


def make_calibration(*steps: Step, **facts: Any) -> Calibration:
    """Of this machine; without steps, one that found both limits: 40,000 tokens/s and 10,000 requests/s."""
    found = (
        make_step(8_000),
        make_step(40_000, cpu_share=0.8),
        make_step(50_000, cpu_share=0.97),
        make_step(10_000, streamed=False, cpu_share=0.85),
        make_step(12_000, streamed=False, cpu_share=0.95),
    )
    fields: dict[str, Any] = {
        "version": "0",
        "created_utc": "2026-11-28T03:04:05Z",
        "machine": client_facts(),
        "placement": "The client was bound to core 0, the null server to core 1.",
        "cores": 2,
        "steps": steps or found,
    }
    return Calibration(**fields | facts)
