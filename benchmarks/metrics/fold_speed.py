"""What it costs to judge a stage: 20,000 records of 128 events each, made as they are read.

Run it with the repository's interpreter; a number of records and of events may follow:

    .venv/bin/python benchmarks/metrics/fold_speed.py 20000 128

Prints the time of making the records alone, then of folding them with that time taken off, of the summary and of the
charts, and the peak memory of the process.
"""

import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from withstand.metrics.context import StageContext
from withstand.metrics.fold import Besides, StageFold
from withstand.metrics.series import fold_series
from withstand.metrics.summarize import stage_summary
from withstand.record import Record, Status, TokensFrom
from withstand.spec import Constant, Stage

RATE_RPS = 100


def records(count: int, events: int) -> Iterator[Record]:
    """Gaps of 10 ms with a little noise; a rate of 100 a second."""
    rng = random.Random(0)
    noise_ns = [rng.randrange(2_000_000) for _ in range(4096)]
    for i in range(count):
        sent_ns = i * 1_000_000_000 // RATE_RPS
        first_ns = sent_ns + 50_000_000
        chunk_ns = [first_ns + k * 10_000_000 + noise_ns[(i * 31 + k) & 4095] for k in range(events)]
        yield Record(
            id=i,
            stage=0,
            status=Status.OK,
            scheduled_ns=sent_ns,
            ready_ns=sent_ns,
            started_ns=sent_ns,
            sent_ns=sent_ns,
            chunk_ns=chunk_ns,
            end_ns=chunk_ns[-1],
            prompt_tokens=100,
            output_tokens=events,
            tokens_from=TokensFrom.SERVER,
        )


def seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    count, events = (int(a) for a in sys.argv[1:3] or ("20000", "128"))
    context = StageContext(stage=Stage(arrivals=Constant(rate=RATE_RPS), num_prompts=count))
    making_s = seconds(lambda: [None for _ in records(count, events)])
    print(f"making {count:,} records of {events} events: {making_s:.2f} s")
    fold = StageFold(context.goodput, besides=Besides(charts=True))
    spent_s = seconds(lambda: [fold.add(record) for record in records(count, events)]) - making_s
    rate = count / spent_s
    print(f"folding: {spent_s:.2f} s, {rate:,.0f} records/s, {rate * events:,.0f} events/s")
    for reading in (stage_summary, fold_series):
        print(f"{reading.__name__}: {seconds(lambda reading=reading: reading(fold, context)):.2f} s")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory: {peak_mb:.0f} MB")


if __name__ == "__main__":
    main()
