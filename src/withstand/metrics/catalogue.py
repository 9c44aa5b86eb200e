"""Every metric, once: its name, unit, direction, definition, and whose formula it is. The documentation is made of it.

Keys are the fields of ``StageSummary``, and with ``agent_`` before them those of its ``AgentSide``. It knows how a
number is defined, not how it is computed.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from withstand.metrics.doubts import RULES, DoubtKind

Better = Literal["lower", "higher", "neither"]
AGENT = "agent_"


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric. ``source`` says whose formula it is, and where ours departs from it."""

    key: str
    title: str
    unit: str
    better: Better
    definition: str
    source: str


_METRICS = (
    Metric(
        key="ttft",
        title="Time to first token (TTFT)",
        unit="ms",
        better="lower",
        definition=(
            "First event with output (content, reasoning or a tool call, not empty) - request sent, which is the last "
            "byte of the request handed to the kernel. None without streaming."
        ),
        source="vLLM's formula; its start is the call of the HTTP library, before a connection is made.",
    ),
    Metric(
        key="ttft_scheduled",
        title="TTFT from schedule",
        unit="ms",
        better="lower",
        definition=(
            "First event with output - the instant the plan wanted the request sent: what a user of a service would "
            "wait, our own lateness and a concurrency cap included. None in a closed loop."
        ),
        source="wrk2's corrected latency (coordinated omission).",
    ),
    Metric(
        key="tpot",
        title="Time per output token after the first (TPOT)",
        unit="ms",
        better="lower",
        definition=(
            "(Last event - first event) / (output tokens - tokens that came with the first event), one value an "
            "answer. Those that came first are known where the server tells the tokens of each event; else each event "
            "of the first read counts as one, and `claimed_not_counted` or `several_tokens_an_event` says how far "
            "TPOT may be too low. None below two tokens, without streaming, and where all tokens came at one instant: "
            "a time that was not seen is never 0."
        ),
        source=(
            "vLLM: (latency - TTFT) / (output length - 1), which is too low where the first event has several tokens, "
            "and 0 for an answer in one piece. AIPerf's ITL has the correction."
        ),
    ),
    Metric(
        key="itl",
        title="Inter-token latency (ITL)",
        unit="ms",
        better="lower",
        definition=(
            "Time between successive events with output, pooled over all good answers. Events that the server wrote in "
            "one piece share a stamp: 0. Where they may share it only because we looked away, or because our own clock "
            "stamped, their gaps are left out and counted in `unsure_gaps`: neither spread nor taken as 0, and what "
            "they could be is in the client's error. Where an event carries several tokens this is the time between "
            "events. It has no interval: the gaps of one answer, and of one step of the engine, hang together."
        ),
        source="vLLM's pooled gaps between chunks; vLLM takes the events of one read as about 0 apart.",
    ),
    Metric(
        key="itl_per_token",
        title="Inter-token latency, per token",
        unit="ms",
        better="lower",
        definition=(
            "Time since tokens came last / tokens that came then, as many times as there are of them; pooled over the "
            "good answers whose server tells the tokens of each event. Unknown for all others: a gap is not spread "
            "over tokens that nobody told. It has no interval."
        ),
        source="SGLang's ITL on its native API.",
    ),
    Metric(
        key="itl_request_mean",
        title="Inter-token latency, mean of a request",
        unit="ms",
        better="lower",
        definition=(
            "(Last event - first event) / (events - 1), one value an answer; None below two events and where all "
            "came at one instant. Its percentiles are those of the answers' means: a stall within one is averaged away."
        ),
        source=(
            "What GuideLLM and AIPerf call ITL is such a mean of each request, but over its tokens: our TPOT, which "
            "GuideLLM weights by the tokens."
        ),
    ),
    Metric(
        key="e2el",
        title="End-to-end latency (E2EL)",
        unit="ms",
        better="lower",
        definition="Last event with output - request sent; without streaming, end of the answer - request sent.",
        source="vLLM's latency.",
    ),
    Metric(
        key="response",
        title="Response time",
        unit="ms",
        better="lower",
        definition="Last event with output - the instant the plan wanted the request sent. None in a closed loop.",
        source="wrk2's corrected latency (coordinated omission).",
    ),
    Metric(
        key="lateness",
        title="Our own lateness",
        unit="ms",
        better="lower",
        definition=(
            "Request taken up by the client - the instant when schedule, concurrency cap and previous turn all allowed "
            "it, and a closed loop's pause after a failure was over. Of every request taken up, failed ones too."
        ),
        source="withstand.",
    ),
    Metric(
        key="duration_s",
        title="Duration",
        unit="s",
        better="neither",
        definition="First send or try to last end, failed requests included. All throughputs of a stage are over it.",
        source="vLLM's benchmark duration, without the time before the first send.",
    ),
    Metric(
        key="request_throughput",
        title="Request throughput",
        unit="req/s",
        better="higher",
        definition="Good answers / duration. None, as all throughputs are, where an open load had one arrival.",
        source="vLLM.",
    ),
    Metric(
        key="request_goodput",
        title="Request goodput",
        unit="req/s",
        better="higher",
        definition=(
            "Good answers that kept every limit given / duration. An answer of one token has no TPOT and passes that "
            "limit; any other time that was not seen has not kept its limit: an answer without streaming fails a TTFT "
            "limit. None without limits."
        ),
        source="vLLM, which takes what was not seen as 0.",
    ),
    Metric(
        key="output_throughput",
        title="Output token throughput",
        unit="tok/s",
        better="higher",
        definition=(
            "Output tokens of good answers / duration. Who counted them stands in `tokens_from`. None as soon as one "
            "answer's count is not known."
        ),
        source="vLLM.",
    ),
    Metric(
        key="total_token_throughput",
        title="Total token throughput",
        unit="tok/s",
        better="higher",
        definition="Prompt and output tokens of good answers / duration.",
        source="vLLM.",
    ),
    Metric(
        key="ledger",
        title="Token ledger",
        unit="tokens",
        better="neither",
        definition=(
            "Tokens of the good answers by everybody who counted them, each with the answers of which it is known: "
            "the server's `usage`; a tokenizer over the text (reasoning and tool calls included), where the model's "
            "own is at hand or --tokenizer names one, of all answers, or of a sample of 200 where the engine has to be "
            "asked; events with output; what the server calls reasoning, what it had cached. Throughput and TPOT use "
            "the first that is known of server, text, events; `tokens_from` says which. The length asked for stands "
            "beside them and is never used for a count. Two counts differ beyond 5 % and one token an answer."
        ),
        source="withstand. SGLang prints the first two.",
    ),
    Metric(
        key="output_throughput_peak",
        title="Peak output token throughput",
        unit="tok/s",
        better="higher",
        definition=(
            "Tokens in the best whole second of the run's clock; unknown where that is below the mean, as in a shorter "
            "stage. An event counts for the tokens that the server tells, else for an equal share of its answer's."
        ),
        source="vLLM's, which counts events and so falls below the mean where an event has several tokens.",
    ),
    Metric(
        key="scheduled_rate",
        title="Scheduled rate",
        unit="req/s",
        better="neither",
        definition=(
            "(Scheduled requests - 1) / (last - first scheduled instant): the rate that the draw really had. "
            "None without a schedule."
        ),
        source="withstand.",
    ),
    Metric(
        key="achieved_rate",
        title="Achieved rate",
        unit="req/s",
        better="higher",
        definition="(Requests sent - 1) / (last - first send), where there is a schedule; unknown without one.",
        source="withstand.",
    ),
    Metric(
        key="concurrency_mean",
        title="Mean concurrency",
        unit="requests",
        better="neither",
        definition="Sum of the requests' times from sent to end / duration (Little's law).",
        source="SGLang's concurrency.",
    ),
    Metric(
        key="concurrency_peak",
        title="Peak concurrency",
        unit="requests",
        better="neither",
        definition=(
            "The most requests in flight at one instant, each from sent to end. One that ends as another starts is "
            "not both."
        ),
        source="A sweep line; vLLM counts the requests that touch a second, which is more.",
    ),
    Metric(
        key="steady",
        title="Steady window",
        unit="s, req/s, tok/s",
        better="higher",
        definition=(
            "Throughputs without the filling at the start and the emptying at the end. The plateau is the median, over "
            "the time in which any request was in flight, of how many were; the window goes from the first to the last "
            "instant with at least 90 % of it, not beyond the last send, rounded inward to 0.1 s. None below a second "
            "or ten ends."
        ),
        source="withstand.",
    ),
    Metric(
        key="success_rate",
        title="Success rate",
        unit="share",
        better="higher",
        definition="Good answers / requests that the plan wanted, sent or not. Only good answers have latencies.",
        source="withstand.",
    ),
    Metric(
        key=f"{AGENT}success_rate",
        title="Tasks solved",
        unit="share",
        better="higher",
        definition=(
            "Tasks whose answer behind the last call of a tool holds what the dataset knows to be right, as words or a "
            "number of its own / tasks with a known answer. A request that failed has not solved its task."
        ),
        source="withstand.",
    ),
    Metric(
        key=f"{AGENT}steps",
        title="Steps of a task",
        unit="steps",
        better="lower",
        definition="Calls of the model, one value an answer.",
        source="withstand.",
    ),
    Metric(
        key=f"{AGENT}model",
        title="Model time of a task",
        unit="ms",
        better="lower",
        definition=(
            "Sum of the task's calls of its model, by the agent's clock. None where the agent did not tell of one."
        ),
        source="withstand.",
    ),
    Metric(
        key=f"{AGENT}tools",
        title="Tool time of a task",
        unit="ms",
        better="lower",
        definition=(
            "Sum of the task's calls of tools, by the agent's clock; of those that ran side by side the longest. None "
            "where the agent did not tell of one."
        ),
        source="withstand.",
    ),
    Metric(
        key=f"{AGENT}own",
        title="The agent's own time",
        unit="ms",
        better="lower",
        definition=(
            "End of the answer - request sent - model time - tool time: the agent itself, and the way to it. Not below "
            "0, since two clocks are in it."
        ),
        source="withstand.",
    ),
    Metric(
        key=f"{AGENT}final_ttft",
        title="TTFT of the final answer",
        unit="ms",
        better="lower",
        definition=(
            "First event with output behind the last call of a tool - request sent, by our stamps; TTFT itself is of "
            "the first text, which may stand before a call. None without streaming."
        ),
        source="withstand.",
    ),
    Metric(
        key=f"{AGENT}tokens",
        title="Tokens of a task",
        unit="tokens",
        better="lower",
        definition=(
            "Prompt and output tokens of all calls of the model, by its server. None as soon as one call's count is "
            "not known."
        ),
        source="withstand.",
    ),
)

CATALOGUE: Mapping[str, Metric] = {metric.key: metric for metric in _METRICS}

_DIRECTIONS = {"lower": "lower is better", "higher": "higher is better", "neither": "neither is better"}

_HEAD = """\
# What is measured

Made from `withstand.metrics.catalogue`; change it there. Times inside are whole nanoseconds of one clock. Unknown is
`null`, never 0.

Percentiles are exact over the values, by numpy's `linear` rule. Their 95 % intervals are distribution-free: the two
order statistics that enclose the true percentile, 2.5 % left on each side; an end that the sample cannot bound is
open. The largest of n values is above the true p99 with a chance of 1 - 0.99ⁿ, which is 97.5 % from n = 368 on: below
that a p99 has no upper end, and is doubted. Others ask for 662, which is the same at 99 % and with a value to spare
([decision 011](decisions/011-answers-for-a-p99.md)). The mean's interval is Student's. Both take the values as
independent draws; requests that wait behind each other are not, so on a busy server the truth is wider: repeat whole
runs to see how much.
"""

_CLIENT_ERROR = """\
## The client's own error

`client error: TTFT p50 ≤ 0.02, p99 ≤ 0.02 ms; ITL p50 ≤ 1.92, p99 ≤ 1.92 ms; sends 0.41 ms late (p99)`

Each `≤` is a bound on the number that stands in the table: the p50 shown is wrong through the client by so much at
most, and so is the p99. Where many events lay in their sockets while the client looked away, the p99 may be known
better than the p50; here its bound is shown as no smaller, and `summary.json` has its own. Of several stages each
number is the worst. Without streaming it is E2EL that has the bounds. `sends … late` is measured: 99 % of the
requests were taken up within that time after they could have been. `waited for a core` is the share of its time for
which the worker that fared worst could have run and had none; it stands there from 1 % on. A bound that is large and
raises no doubt is followed by `chance alone moves a percentile of 15 answers by more`: only more answers make it
better known. Where a fact is missing there is no bound. `summary.json` has all bounds, also of the
means, TPOT and E2EL (`self_check.error_ms`).
"""

_DOUBTS_HEAD = """\
## Doubts

A number that may not be what it seems is shown with its doubt. These are all of them, and when each is raised.
"""


def catalogue_markdown() -> str:
    """The documentation page, whole."""
    metrics = [_metric_markdown(metric) for metric in CATALOGUE.values()]
    rows = [f"| `{kind}` | {RULES[kind]} |" for kind in DoubtKind]
    table = "\n".join(["| doubt | raised when |", "| --- | --- |", *rows])
    return "\n".join([_HEAD, *metrics, _CLIENT_ERROR, _DOUBTS_HEAD, table, ""])


def _metric_markdown(metric: Metric) -> str:
    return (
        f"## {metric.title}\n\n"
        f"`{metric.key}` · {metric.unit} · {_DIRECTIONS[metric.better]}\n\n"
        f"{metric.definition}\n\n"
        f"Formula: {metric.source}\n"
    )
