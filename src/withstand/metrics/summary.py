"""What a stage came to: the numbers of one Summary, each as defined in the catalogue.

Times are ms, rates are per second. None = cannot be known. ``facts`` says whether the numbers were computed from
records (True) or taken over from somebody's aggregates (False: no intervals).
"""

from collections.abc import Mapping

import msgspec

from withstand.metrics.doubts import Doubt
from withstand.metrics.energy import Energy
from withstand.metrics.idle import Day
from withstand.metrics.layers import Layers
from withstand.metrics.ledger import Ledger
from withstand.metrics.server import ServerSide
from withstand.record import OUR_DOING, Health

PERCENTILES = (50, 75, 90, 95, 99)


class Interval(msgspec.Struct, frozen=True):
    """A confidence interval of 95 %; an end that the sample cannot bound is None."""

    low: float | None
    high: float | None


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the requests (ITL: over the gaps) of a stage. ``percentiles`` has the keys p50 … p99."""

    n: int | None
    """None: somebody's aggregate that does not tell."""
    mean: float | None = None
    std: float | None = None
    """Of the population (numpy's default), as vLLM has it."""
    min: float | None = None
    max: float | None = None
    percentiles: dict[str, float | None] = {}
    intervals: dict[str, Interval] = {}
    """Keys ``mean``, p50 … p99."""


class Off(msgspec.Struct, frozen=True):
    """By how much a shown number may be wrong at most, in ms; None = not known, or nothing is shown."""

    mean: float | None = None
    p50: float | None = None
    p99: float | None = None


class ClientError(msgspec.Struct, frozen=True, kw_only=True):
    """What our own doings may have added to each metric, or taken from it."""

    ttft: Off = Off()
    tpot: Off = Off()
    itl: Off = Off()
    e2el: Off = Off()
    response: Off = Off()
    """By our own lateness alone; what reading adds stands in ``e2el``."""
    rate_share: float | None = None
    """The part of the load that is missing through us: the schedule drawn out, or slots that waited for our turn."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked of a stage."""

    request_rate: float | None = None
    """Offered requests a second; None = inf or not constant."""
    arrivals: str = "inf"
    """The process; ``unknown`` where another tool's file does not tell."""
    burstiness: float | None = None
    max_concurrency: int | None = None
    num_prompts: int | None = None
    duration_s: float | None = None
    stopped_early: bool = False
    """Interrupted or cut by a fault: fewer requests than planned are no fault of the server."""


class StageCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a million tokens cost at one stage, in the currency of the hour's price; None = its tokens are not known."""

    price_per_hour: float
    gpus: int | None = None
    """How many it is of, where it was told of one; counted from what was seen, or as told."""
    per_million_input: float | None
    per_million_output: float | None
    per_million_output_interval: Interval | None = None
    """By what chance does to the throughput; None = not known."""
    per_request: float | None = None
    """Of those that were answered."""
    per_request_interval: Interval | None = None
    good_share: float | None
    """Of the requests that kept the limits; None without limits."""
    holds: bool | None
    """Whether that share is as large as was asked."""
    per_million_good_output: float | None = None
    """The whole price, laid on the tokens of answers that kept the limits alone."""
    power_per_million_output: float | None = None
    """What the GPUs' power cost besides; it is in no other number."""
    elsewhere_per_request: float | None = None
    """What such a request costs by the token."""
    times_cheaper: float | None = None
    """The bill by the token through that of the machine, at this load; below 1 it is dearer."""


class Sustained(msgspec.Struct, frozen=True, kw_only=True):
    """The largest load that is known of, in requests a second."""

    rps: float
    interval: Interval | None = None
    stage: str | None
    """Where it was seen; None = it is a search's limit."""
    within_limits: bool | None
    """Whether it keeps what was promised; None = nothing was."""


class BreakEven(msgspec.Struct, frozen=True, kw_only=True):
    """A machine by the hour against a price by the token."""

    elsewhere_per_request: float
    rate_rps: float
    """From here on the machine is cheaper."""
    input_tokens_per_day: float
    output_tokens_per_day: float
    """At that rate."""
    utilisation: float
    """That rate by the largest; above 1 the machine is never cheaper."""
    times_cheaper: float
    """At the largest rate; below 1 it is dearer."""
    times_interval: Interval | None = None
    cached_share: float = 0.0
    """Of the input, that was priced as cached."""


class Economy(msgspec.Struct, frozen=True, kw_only=True):
    """What a run means for a bill. None = not asked, or not known."""

    price_per_hour: float
    sustained: Sustained
    break_even: BreakEven | None = None
    day: Day | None = None
    """Of a machine that is given back when it is idle."""
    cold_start_s: float | None = None
    always_on_per_day: float
    idle_per_day: float | None = None
    """What of it is paid for time in which nothing needs the machine, at the load of the day."""
    scaled_per_day: float | None = None


class ColdStart(msgspec.Struct, frozen=True, kw_only=True):
    """TTFT of answers that a cold server gave, against that of the stage after each: a warm one. Times in ms."""

    by: str
    """How the server became cold: ``gateway``, ``restart``, ``pause``."""
    cold: Distribution
    """Where the server was started anew, with the time until it was ready."""
    warm: Distribution
    cold_started: int
    """Cold answers of which the gateway told that they waited for a start."""
    warm_started: int
    start_mean: float | None
    """Of the cold TTFT, what the start took, as the gateway told or as it was seen; None = not known."""
    extra: float | None
    """Mean cold TTFT - mean warm TTFT."""
    extra_interval: Interval | None = None
    """By Welch's t; None below 5 answers on a side."""


class AgentSide(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent made of its tasks. Times in ms."""

    tasks: int
    """With a known answer."""
    solved: int
    success_rate: float | None
    limited: int
    """Ended by a limit."""
    tool_calls: dict[str, int] = {}
    failed_tool_calls: dict[str, int] = {}
    steps: Distribution
    """Calls of the model, for a task."""
    model: Distribution
    """Time in the model, for a task."""
    tools: Distribution
    own: Distribution
    """Neither in the model nor in tools: the agent itself, and the way to it."""
    final_ttft: Distribution
    """To the first output behind the last call of a tool."""
    tokens: Distribution
    """Prompt and output of all calls of the model."""


def cut_by_us(failed: int, statuses: Mapping[str, int]) -> int:
    """Of those that failed, the ones that we ended or lost ourselves."""
    return min(failed, sum(statuses.get(status, 0) for status in OUR_DOING))


class StageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One stage."""

    name: str
    phase: str | None = None
    load: Load
    facts: bool = True
    attempted: int
    """Requests that the plan wanted, sent or not."""
    completed: int
    failed: int
    statuses: dict[str, int] = {}
    errors: dict[str, int] = {}
    """The commonest error texts with their counts, at most ten."""
    errors_by_status: dict[str, dict[str, int]] = {}
    """The same of each status."""
    success_rate: float | None = None
    ended_by: str | None = None
    """What ended it before its limit, as was asked; in half a sentence."""
    cut_short: str | None = None
    """Why it is shorter than its plan where nobody asked for that; in half a sentence."""
    duration_s: float | None = None
    """First send to last end."""
    scheduled_rate: float | None = None
    """Requests a second that the schedule really held (the draw, not the wish)."""
    achieved_rate: float | None = None
    """Sends a second, by the instants of the sends; None without a schedule, where answers or a burst make it."""
    request_throughput: float | None = None
    request_goodput: float | None = None
    output_throughput: float | None = None
    output_goodput: float | None = None
    """Output tokens a second of the answers that kept the limits."""
    total_token_throughput: float | None = None
    total_input_tokens: int | None = None
    total_output_tokens: int | None = None
    tokens_from: dict[str, int] = {}
    """Who counted the output tokens, by number of requests."""
    ledger: Ledger | None = None
    """The tokens by everybody who counted them; None where only aggregates are known."""
    output_events: int = 0
    shared_stamps: int = 0
    """Events that share their stamp with the one before: they came in one read."""
    unsure_gaps: int = 0
    """Gaps left out of the ITL: one of their two events came while we looked away, and lay beside a later one."""
    concurrency_mean: float | None = None
    concurrency_peak: int | None = None
    output_throughput_peak: float | None = None
    """Tokens in the best whole second."""
    steady: "SteadyWindow | None" = None
    ttft: Distribution
    tpot: Distribution
    itl: Distribution
    """Between events."""
    itl_per_token: Distribution = Distribution(n=0)
    """Between tokens, of the answers whose server tells the tokens of each event."""
    itl_request_mean: Distribution = Distribution(n=0)
    """One mean an answer."""
    e2el: Distribution
    response: Distribution
    """From schedule to the last token."""
    ttft_scheduled: Distribution
    """From schedule to the first token."""
    lateness: Distribution
    """Our own: started - ready."""
    finish_reasons: dict[str, int] = {}
    cost: StageCost | None = None
    """None where nobody has told a price."""
    energy: Energy | None = None
    """None where nobody has told of any power."""
    client_error: ClientError | None = None
    """None where there are no records to tell."""
    health: tuple[Health, ...] = ()
    agent: AgentSide | None = None
    """None where no agent was asked."""
    server: ServerSide | None = None
    """None where nobody has looked, or nothing was seen."""
    layers: Layers | None = None
    """None where no layer has told anything."""
    doubts: tuple[Doubt, ...] = ()

    @property
    def cut(self) -> int:
        """Of those that failed, the ones that we ended or lost ourselves."""
        return cut_by_us(self.failed, self.statuses)


class SteadyWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The middle of a stage, without the filling at its start and the emptying at its end."""

    start_s: float
    end_s: float
    request_throughput: float | None
    output_throughput: float | None


class LeftOut(msgspec.Struct, frozen=True):
    """A stage that was planned and has no numbers: it was not run on purpose, or had no arrival."""

    stage: str
    why: str
    """Half a sentence."""
    no_arrival: bool = False
    """It was run, and nothing was due while it lasted."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A run."""

    stages: tuple[StageSummary, ...]
    backend: str | None = None
    model_id: str | None = None
    target: str | None = None
    dataset: str | None = None
    """Several, where stages differ, with commas in between."""
    complete: bool = True
    """False: the run was cut (a crash, Ctrl-C), and what stands here is what there was by then."""
    partial: str | None = None
    """Why it is not complete, and what to do about it."""
    economy: Economy | None = None
    """None where nobody has told a price."""
    cold_start: ColdStart | None = None
    """None where no stage began with a cold server."""
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader should know besides: a line each."""
    doubts: tuple[Doubt, ...] = ()
    """Of the run as a whole."""
