"""The four phases on a bare laptop: warm-up, baseline, concurrency, sustained, with the embedded engine.

Every stage ends by time, so the whole fits into the minutes given on any machine. The rates of the last phase are
decided when the phase before is over: half of what the engine was seen to carry, most of it, and more than all of it.
"""

from collections.abc import Sequence
from pathlib import Path

from withstand.app.run import run
from withstand.app.screen import Outcome, Screen
from withstand.metrics.summary import StageSummary
from withstand.spec import Plan, Poisson, Stage, Target, Workload

PROMPT_LENGTHS = (32, 64, 128, 256, 512)
CONCURRENCIES = (1, 2, 4, 8, 16)
LOAD_SHARES = (0.5, 0.8, 1.2)
WARMUPS = 5
OUTPUT_LEN = 32
INPUT_LEN = 128

# Shares of the whole time; the rest is left for what still runs at the end of each stage.
_BASELINE_SHARE, _CONCURRENCY_SHARE, _SUSTAINED_SHARE = 0.14, 0.26, 0.26


def demo(*, minutes: float, output_dir: Path | None, screen: Screen) -> Outcome:
    """Measure the embedded engine within ``minutes``, once engine and model are there."""
    total_s = minutes * 60
    plan = Plan(
        target=Target(extra_body={"temperature": 0}),
        workload=_prompts(INPUT_LEN),
        stages=(_warmup(), *_baseline(total_s), *_concurrency(total_s)),
        output_dir=str(output_dir) if output_dir else None,
    )
    return run(plan, argv=["demo"], screen=screen, more=lambda done: _sustained(done, total_s))


def _prompts(input_len: int) -> Workload:
    return Workload(dataset="random", options={"input_len": input_len, "output_len": OUTPUT_LEN})


def _warmup() -> Stage:
    return Stage(name="warm-up", phase="warm-up", max_concurrency=1, num_prompts=WARMUPS, warmup=True)


def _baseline(total_s: float) -> list[Stage]:
    """One request at a time, longer and longer prompts."""
    duration_s = total_s * _BASELINE_SHARE / len(PROMPT_LENGTHS)
    return [
        Stage(
            name=f"prompt-{length}",
            phase="baseline",
            max_concurrency=1,
            duration_s=duration_s,
            workload=_prompts(length),
        )
        for length in PROMPT_LENGTHS
    ]


def _concurrency(total_s: float) -> list[Stage]:
    """More and more users who ask again as soon as they are answered."""
    duration_s = total_s * _CONCURRENCY_SHARE / len(CONCURRENCIES)
    return [
        Stage(name=f"concurrency-{c}", phase="concurrency", max_concurrency=c, duration_s=duration_s)
        for c in CONCURRENCIES
    ]


def _sustained(done: Sequence[StageSummary], total_s: float) -> list[Stage]:
    """Requests that come by themselves, at rates around the capacity just seen; nothing where none was seen."""
    if any(s.phase == "sustained" for s in done):
        return []
    capacity_rps = max((s.request_throughput or 0.0 for s in done if s.phase == "concurrency"), default=0.0)
    duration_s = total_s * _SUSTAINED_SHARE / len(LOAD_SHARES)
    rates_rps = [float(f"{capacity_rps * share:.2g}") for share in LOAD_SHARES]
    return [
        Stage(name=f"rate-{rate:g}", phase="sustained", arrivals=Poisson(rate), duration_s=duration_s)
        for rate in rates_rps
        if rate > 0
    ]
