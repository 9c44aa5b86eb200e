"""What a run came to, drawn by hypothesis, and the sheet on which a writer of files notes what must be read from it."""

from collections.abc import Sequence
from itertools import combinations

import msgspec
from hypothesis import strategies as st

from withstand.interop.shape import ImportedRun, Stats

WITHIN = 1e-9
WORD = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789", min_size=1, max_size=8).map(lambda word: f"m{word}")


class Times(msgspec.Struct, frozen=True):
    """One metric, in ms."""

    mean: float
    std: float
    p50: float
    p90: float
    p99: float


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """One run, whose parts agree with one another."""

    completed: int
    failed: int
    duration_s: float
    prompt: int
    answer: int
    """Tokens of each request."""
    model: str
    rate: float | None
    """Requests a second asked for; None = all at once."""
    concurrency: int | None
    ttft: Times
    tpot: Times
    itl: Times

    @property
    def attempted(self) -> int:
        return self.completed + self.failed

    @property
    def input_tokens(self) -> int:
        return self.completed * self.prompt

    @property
    def output_tokens(self) -> int:
        return self.completed * self.answer

    @property
    def e2el(self) -> Times:
        return Times(
            *(first + step * (self.answer - 1) for first, step in zip(_all(self.ttft), _all(self.tpot), strict=True))
        )

    def per_second(self, count: float) -> float:
        return count / self.duration_s


def _all(times: Times) -> tuple[float, ...]:
    return msgspec.structs.astuple(times)


def _positive(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_subnormal=False)


@st.composite
def times(draw: st.DrawFn, low: float, high: float) -> Times:
    p50, p90, p99 = sorted(draw(st.tuples(*[_positive(low, high)] * 3)))
    return Times(draw(_positive(low, high)), draw(_positive(0.01, high)), p50, p90, p99)


@st.composite
def truths(draw: st.DrawFn) -> Truth:
    rate = draw(st.none() | _positive(0.1, 5000))
    return Truth(
        completed=draw(st.integers(1, 100_000)),
        failed=draw(st.integers(0, 500)),
        duration_s=draw(_positive(0.5, 20_000)),
        prompt=draw(st.integers(1, 50_000)),
        answer=draw(st.integers(2, 5000)),
        model=draw(WORD),
        rate=rate,
        concurrency=draw(st.none() | st.integers(1, 5000)) if rate else draw(st.integers(1, 5000)),
        ttft=draw(times(0.5, 90_000)),
        tpot=draw(times(0.5, 900)),
        itl=draw(times(901, 1900)),  # never that of TPOT: InferenceMAX copies it
    )


class Sheet:
    """Takes values down as they are written, rounded and in the file's unit, and so knows what must come back."""

    def __init__(self) -> None:
        self.known: dict[str, float] = {}

    def put(self, name: str, value: float, digits: int | None = None, scale: float = 1.0) -> float:
        """The value for the file; a reader has ``scale`` times that."""
        written = value / scale if digits is None else round(value / scale, digits)
        self.known[name] = written * scale
        return written

    def cell(self, name: str, value: float, digits: int = 2, scale: float = 1.0, *, commas: bool = False) -> str:
        """The same as text with so many decimals."""
        written = self.put(name, value, digits, scale)
        return f"{written:,.{digits}f}" if commas else f"{written:.{digits}f}"

    def count(self, name: str, value: int) -> int:
        self.known[name] = value
        return value

    def spread(self, name: str, of: Times, keys: dict[str, str], scale: float = 1.0) -> dict[str, float]:
        """``keys``: the file's name of a statistic → ours."""
        return {theirs: self.put(f"{name}.{ours}", getattr(of, ours), scale=scale) for theirs, ours in keys.items()}


class Sample(msgspec.Struct, frozen=True):
    """A file's text, and of each run in it what must be read; ``text`` conditions as ``model``."""

    text: str
    runs: tuple[dict[str, float], ...]
    conditions: tuple[dict[str, object], ...] = ()


def twins(runs: Sequence[dict[str, float]]) -> bool:
    """Whether one of them may rightly be taken for another."""
    return any(_alike(one, other) for one, other in combinations(runs, 2))


def _alike(one: dict[str, float], other: dict[str, float]) -> bool:
    shared = {name for name in one.keys() & other.keys() if not name.endswith((".std", ".min", ".max"))}
    return all(abs(one[name] - other[name]) <= 0.1 + 0.01 * abs(one[name]) for name in shared)


def read_as(run: ImportedRun) -> dict[str, float]:
    """Every number that the file itself is said to hold."""
    told = {name: value for name, value in run.numbers.items() if "computed here" not in run.notes.get(name, "")}
    for name, stats in run.stats.items():
        told |= {f"{name}.{which}": value for which, value in _moments(stats).items()}
    return told


def _moments(stats: Stats) -> dict[str, float]:
    moments = {which: getattr(stats, which) for which in ("mean", "std", "min", "max")}
    return {which: value for which, value in moments.items() if value is not None} | stats.percentiles


def differences(runs: Sequence[ImportedRun], sample: Sample) -> list[str]:
    """What is missing, other than it should be, or was never written."""
    if len(runs) != len(sample.runs):
        return [f"{len(runs)} runs of {len(sample.runs)}"]
    found: list[str] = []
    for run, known in zip(runs, sample.runs, strict=True):
        read = read_as(run)
        wrong = {name: value for name, value in known.items() if not _same(read.get(name), value)}
        found += [f"{name}: {read.get(name)} for {value}" for name, value in wrong.items()]
        found += [f"{name}: {value} for nothing" for name, value in read.items() if name not in known]
    for run, asked in zip(runs, sample.conditions, strict=False):
        found += [
            f"{name}: {getattr(run.conditions, name)!r} for {value!r}"
            for name, value in asked.items()
            if getattr(run.conditions, name) != value
        ]
    return found


def _same(read: float | None, value: float) -> bool:
    return read is not None and abs(read - value) <= WITHIN * max(abs(value), 1)
