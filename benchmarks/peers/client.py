"""The shape of an adapter: a case becomes a command line, and what the command left behind becomes ``Said``.

Pure but for reading the client's own result file. What a client *means* by a word is translated here, and noted, into
the words of withstand's catalogue; a number that it does not state stays None and is never computed for it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One load, in every client's reach: equal prompts, answers of a fixed length, a rate or a number at once."""

    base_url: str
    """Without /v1."""
    folder: Path
    """Where the client may write."""
    requests: int
    output_tokens: int
    input_tokens: int = 32
    rate_rps: float | None = None
    """None: as many at once as ``concurrency``, each begun when one has ended."""
    concurrency: int = 1
    timeout_s: float = 60.0
    """Of a request, for the clients that know such a thing."""
    model: str = "truth"
    tokenizer: Path


class Command(msgspec.Struct, frozen=True):
    """What is to be run, with which additions to the environment, beside which files of the case's folder."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = {}
    files: Mapping[str, str] = {}


class Spread(msgspec.Struct, frozen=True):
    """A metric as a client states it, in ms. None = it does not say."""

    mean: float | None = None
    p50: float | None = None
    p99: float | None = None


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a client itself reported. None = it does not say."""

    completed: int | None = None
    failed: int | None = None
    output_tokens: int | None = None
    """Of the requests that it calls completed, all together."""
    request_rate_rps: float | None = None
    ttft_ms: Spread = Spread()
    tpot_ms: Spread = Spread()
    itl_ms: Spread = Spread()
    """Between two arrivals, as the client counts arrivals; a mean of requests' means where that is all it keeps."""
    e2el_ms: Spread = Spread()


class Client(Protocol):
    """An adapter."""

    @property
    def name(self) -> str:
        """As tables and options have it."""

    @property
    def environment(self) -> str | None:
        """The recipe of its environment; None = it is here already."""

    @property
    def version(self) -> str:
        """As pinned."""

    @property
    def keeps_rate(self) -> bool:
        """Whether it can send at a constant rate."""

    @property
    def keeps_count(self) -> bool:
        """Whether it sends exactly as many requests as it is told."""

    def command(self, case: Case) -> Command:
        """How it is called."""

    def parse(self, folder: Path) -> Said:
        """What it reported.

        Raises:
            ReportError: it left nothing that can be read.
        """


def options(values: Mapping[str, object]) -> tuple[str, ...]:
    """Options of a command line; True = the option alone, a tuple = the option again for each."""
    words: list[str] = []
    for name, value in values.items():
        for each in value if isinstance(value, tuple) else (value,):
            words += [name] if each is True else [name, str(each)]
    return tuple(words)


class ReportError(Exception):
    """A client ended without a report, or with one of another shape."""


def result_file(folder: Path, pattern: str) -> Path:
    """The only file of that name.

    Raises:
        ReportError: there is none.
    """
    found = sorted(folder.rglob(pattern))
    if not found:
        raise ReportError(f"no {pattern}")
    return found[0]


def result_json(folder: Path, pattern: str) -> Any:
    """The content of the only file of that name.

    Raises:
        ReportError: there is none, or it is no JSON.
    """
    path = result_file(folder, pattern)
    try:
        return json.loads(path.read_text("utf-8"))  # unlike msgspec's, it reads the NaN that clients write
    except ValueError as e:
        raise ReportError(f"{path.name} is no JSON") from e


def said_in_vllm_s_words(report: Any, e2el: str = "e2el") -> Said:
    """What a report says under the field names of vLLM's result file, but for the one of E2EL."""
    ttft_ms, tpot_ms, itl_ms, e2el_ms = (
        spread(report, f"mean_{m}_ms", f"median_{m}_ms", f"p99_{m}_ms") for m in ("ttft", "tpot", "itl", e2el)
    )
    return Said(
        completed=count(report, "completed"),
        failed=count(report, "failed"),
        output_tokens=count(report, "total_output_tokens"),
        request_rate_rps=number(report, "request_throughput"),
        ttft_ms=ttft_ms,
        tpot_ms=tpot_ms,
        itl_ms=itl_ms,
        e2el_ms=e2el_ms,
    )


def spread(report: Any, mean: str, p50: str, p99: str, to_ms: float = 1) -> Spread:
    """Three numbers of a report, by their keys; what is absent or no number is None."""
    mean_, p50_, p99_ = (number(report, key, to_ms) for key in (mean, p50, p99))
    return Spread(mean_, p50_, p99_)


def number(report: Any, key: str, factor: float = 1) -> float | None:
    """A number of a report; absent, null and NaN are None."""
    value = report.get(key) if isinstance(report, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124  NaN alone differs from itself
        return None
    return value * factor


def count(report: Any, key: str) -> int | None:
    """A whole number of a report."""
    value = number(report, key)
    return None if value is None else round(value)
