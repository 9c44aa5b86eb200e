"""Names for what other tools measure and the catalogue does not: each with its unit and definition.

A number under one of these is never compared with one of another name. It knows no formats.
"""

from collections.abc import Mapping

import msgspec

from withstand.metrics.catalogue import CATALOGUE


class Term(msgspec.Struct, frozen=True):
    """One foreign metric."""

    unit: str
    definition: str


TERMS: Mapping[str, Term] = {
    "attempted": Term("requests", "Requests sent or to be sent, failed ones included."),
    "completed": Term("requests", "Good answers, as the tool judged them."),
    "failed": Term("requests", "Requests that the tool counted as failed; absent where it does not count them."),
    "incomplete": Term("requests", "Requests cut off by the end of the run: neither good nor failed."),
    "total_input_tokens": Term("tokens", "Prompt tokens of the good answers."),
    "total_output_tokens": Term("tokens", "Output tokens of the good answers, by whoever the tool believes."),
    "retokenized_output_tokens": Term("tokens", "Output tokens counted again from the answers' text by the client."),
    "mean_input_tokens": Term("tokens", "Mean prompt length."),
    "mean_output_tokens": Term("tokens", "Mean answer length."),
    "input_throughput": Term("tok/s", "Prompt tokens of good answers / duration."),
    "output_events_peak": Term(
        "events/s", "Chunks, not tokens, in the best second: below the mean where chunks hold several tokens."
    ),
    "concurrency_touching": Term(
        "requests", "The most requests that touch one second: more than were ever in flight at once."
    ),
    "attempts_per_s": Term("req/s", "Requests sent, failed ones included, / duration."),
    "throughput_per_gpu": Term("tok/s", "Prompt and output tokens / duration / GPUs."),
    "output_throughput_per_gpu": Term("tok/s", "Output tokens / duration / GPUs."),
    "input_throughput_per_gpu": Term("tok/s", "Prompt tokens / duration / GPUs."),
    "accept_length": Term("tokens", "Mean tokens accepted a step of speculative decoding."),
    "speed_per_request": Term(
        "tok/s",
        "Mean over requests of one request's own tokens / its own time: no throughput "
        "of a server, and nearly the same at any load.",
    ),
    "ttft_output": Term("ms", "First token of the answer proper, after reasoning - request sent."),
    "time_to_second_token": Term("ms", "Second chunk - first chunk."),
    "e2el_per_token": Term("ms", "End-to-end latency / output tokens: holds TTFT, so it is neither TPOT nor ITL."),
    "tpot_over_n": Term("ms", "(Last token - first token) / output tokens: n, where TPOT has n - 1."),
    "itl_tokens": Term("ms", "Gaps between tokens; all but the first token of a chunk count as 0 apart."),
    "itl_request_means": Term("ms", "One mean gap a request: spikes are averaged away, as in TPOT."),
    "schedule_delay": Term("ms", "Real send - planned send: how far the load generator was behind."),
    "client_queue_time": Term("ms", "Time a request waited in the client for a free place under the cap."),
    "e2el_with_queue": Term("ms", "End-to-end latency with the wait in the client."),
    "effective_latency": Term("ms", "Last token - the instant at which the plan allowed the request."),
    "server_ttft": Term("ms", "TTFT as the server tells it in histograms: no network, coarse steps."),
    "server_tpot": Term("ms", "TPOT as the server tells it in histograms."),
    "server_e2el": Term("ms", "Latency as the server tells it in histograms."),
}


def unit_of(name: str) -> str:
    """The unit of a metric by its name, ours or theirs."""
    return CATALOGUE[name].unit if name in CATALOGUE else TERMS[name].unit


def known(name: str) -> bool:
    """Whether a definition stands behind a name."""
    return name in CATALOGUE or name in TERMS


def terms_markdown() -> str:
    """The table of the documentation page."""
    rows = [f"| `{name}` | {term.unit} | {term.definition} |" for name, term in TERMS.items()]
    return "\n".join(["| name | unit | definition |", "| --- | --- | --- |", *rows, ""])
