"""The printed "Serving Benchmark Result" block of vLLM, SGLang and their many variants: any set of labels, any order.

The same banner stands over benchmarks of other things, and over templates with ``xxx`` for numbers: both are refused
by name. It knows labels; where blocks lie, ``blocks`` knows.
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from withstand.interop import values
from withstand.interop.blocks import Block, Entry, find, lines_of
from withstand.interop.build import RunBuilder
from withstand.interop.context import Headings, read_command
from withstand.interop.serving_json import note_definitions
from withstand.interop.shape import ImportedRun, Refused
from withstand.interop.source import Place

_LATENCY = re.compile(
    r"^(?P<stat>mean|median|std|min|max|p\d+(?:\.\d+)?) "
    r"(?P<metric>ttft|tpot|itl|e2el|e2e latency|client queue time|e2el incl\. client queue) ?\((?P<unit>ms|s)\)$"
)
_METRICS = {
    "ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2el", "e2e latency": "e2el",
    "client queue time": "client_queue_time", "e2el incl. client queue": "e2el_with_queue",
}  # fmt: skip
_NUMBERS = {
    "successful requests": "completed",
    "completed requests": "completed",
    "failed requests": "failed",
    "requests cut by us": "incomplete",
    "benchmark duration (s)": "duration_s",
    "measurement duration (s)": "duration_s",
    "total input tokens": "total_input_tokens",
    "input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "generated tokens": "total_output_tokens",
    "total generated tokens (retokenized)": "retokenized_output_tokens",
    "request throughput (req/s)": "request_throughput",
    "request goodput (req/s)": "request_goodput",
    "input token throughput (tok/s)": "input_throughput",
    "output token throughput (tok/s)": "output_throughput",
    "peak output token throughput (tok/s)": "output_events_peak",
    "peak concurrent requests": "concurrency_touching",
    "total token throughput (tok/s)": "total_token_throughput",
    "total throughput (tok/s)": "total_token_throughput",
    "concurrency": "concurrency_mean",
    "average concurrency": "concurrency_mean",
    "accept length": "accept_length",
    "acceptance length": "accept_length",
}
_CONDITIONS = {
    "backend": "backend", "model": "model", "dataset": "dataset", "architecture": "engine",
    "max request concurrency": "max_concurrency", "max reqeuest concurrency": "max_concurrency",
    "maximum request concurrency": "max_concurrency",
}  # fmt: skip
_MIXED_MIN = 3
_OURS = "client error: "
_BEHIND_LINES = 3
_STEADY = "Steady"
"""SGLang's second block: the same run between its beginning and its end."""
_OFFLINE = "Offline"
_RATES = frozenset({"traffic request rate", "request rate configured (rps)", "request rate"})
_OF_LANGUAGE = frozenset(
    {"total_input_tokens", "total_output_tokens", "output_throughput", "total_token_throughput", "ttft", "tpot", "itl"}
)


def read(text: str, place: Place) -> tuple[list[ImportedRun], list[Refused]]:
    """Every block of a text, and those that are none."""
    runs: list[ImportedRun] = []
    refused: list[Refused] = []
    headings = Headings()
    ends_midway = not text.endswith("\n")
    lines = lines_of(text)
    for block in find(text):
        headings.pass_over(block.before)
        where = place.at(f"line {block.line}")
        reason = _why_none(block)
        if reason:
            refused.append(Refused(where.position or "", reason))
        else:
            tool = "withstand" if _is_ours(lines[block.end_line :]) else _tool(block)
            runs.append(_run(block, where.builder("printed block", tool), headings, ends_midway=ends_midway))
    return runs, refused


def _why_none(block: Block) -> str | None:
    if _OFFLINE in block.title:
        return f"an {block.title!r}: without a server no requests arrive over time in it."
    names = {name for entry in block.entries if (name := _name(entry.label))}
    numeric = [entry for entry in block.entries if _name(entry.label)]
    blanks = [entry for entry in numeric if values.is_placeholder(entry.value)]
    if blanks and len(blanks) * 2 > len(numeric):
        return f"a template with placeholders ({blanks[0].label}: {blanks[0].value}), no result."
    if not numeric:
        return f"a {block.title!r} without a number that is known here."
    mixed = _said_twice(numeric)
    if len(mixed) >= _MIXED_MIN:
        return f"the lines of several results are mixed here: {mixed[0]} and {len(mixed) - 1} more stand twice in it."
    if names & _OF_LANGUAGE:
        return None
    backend = next((entry.value for entry in block.entries if entry.label.lower() == "backend"), None)
    told = f" (Backend: {backend})" if backend else ""
    return f"a {block.title!r} of something else than a language model{told}: it has neither tokens, TTFT nor TPOT."


def _said_twice(entries: Sequence[Entry]) -> list[str]:
    """Labels with two values: two clients wrote to one log at once."""
    said: dict[str, set[str]] = defaultdict(set)
    for entry in entries:
        said[entry.label].add(entry.value.strip())
    return [label for label, different in said.items() if len(different) > 1]


def _name(label: str) -> str | None:
    key = label.lower()
    latency = _LATENCY.match(key)
    return _METRICS[latency["metric"]] if latency else _NUMBERS.get(key)


def _run(block: Block, run: RunBuilder, headings: Headings, *, ends_midway: bool) -> ImportedRun:
    for i, entry in enumerate(block.entries):
        run.shown.setdefault(entry.label, entry.value)
        cut = ends_midway and not block.closed and i == len(block.entries) - 1
        if cut:
            run.leave(entry.label, "the text ends right behind it: its last digits may be missing.")
        else:
            _take(run, entry)
    if not block.closed:
        run.remark("The block has no closing rule: it may have been cut off.")
    read_command(run, block.before)
    headings.put(run)
    if _STEADY in block.title:
        run.label("part", block.title)
    note_definitions(run, run.source.tool)
    return run.build()


def _take(run: RunBuilder, entry: Entry) -> None:
    key = entry.label.lower()
    latency = _LATENCY.match(key)
    if latency:
        scale = 1000.0 if latency["unit"] == "s" else 1.0
        run.stat(_METRICS[latency["metric"]], latency["stat"], _clean(run, entry), scale, said=entry.label)
    elif key in _NUMBERS:
        run.number(_NUMBERS[key], _clean(run, entry), said=entry.label)
    elif key in _RATES:
        run.rate(entry.value)
    elif key in _CONDITIONS:
        run.condition(_CONDITIONS[key], entry.value)
    else:
        run.label(entry.label, entry.value)


def _clean(run: RunBuilder, entry: Entry) -> object:
    """A value with a stray mark behind it is read, and the mark told."""
    cell = values.split_unit(entry.value)
    if cell is None or (cell[1] and f"({cell[1]})" not in entry.label):
        return entry.value
    if not cell[1] and not entry.value[-1].isdigit():
        run.remark(f"{entry.label} has something behind its number: {entry.value!r}.")
    return cell[0]


def _is_ours(behind: Sequence[str]) -> bool:
    """Our block is vLLM's or SGLang's to the letter; right below it stands how true it is."""
    return any(line.strip().startswith(_OURS) for line in behind[:_BEHIND_LINES])


def _tool(block: Block) -> str:
    """SGLang prints its backend and spells sections its own way; vLLM does neither."""
    labels = {entry.label.lower() for entry in block.entries}
    said = {"backend", "traffic request rate", "concurrency ratio"} & labels
    return "SGLang" if said or any("e2e latency" in label for label in labels) else "vLLM"
