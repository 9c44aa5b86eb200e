"""Reasons not to believe a number: a closed set, each with the sentence a user reads and the remedy."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class DoubtKind(StrEnum):
    """Why a number may not be what it seems."""

    WORKER_LOST = "worker_lost"
    CLIENT_BOUND = "client_bound"
    SENDS_LATE = "sends_late"
    CLOCK_LAGGED = "clock_lagged"
    SERVICE_LOST = "service_lost"
    REQUESTS_FAILED = "requests_failed"
    RATE_LIMITED = "rate_limited"
    ERROR_TEXT = "error_text"
    RECORDS_MISSING = "records_missing"
    FEWER_THAN_ASKED = "fewer_than_asked"
    STOPPED_EARLY = "stopped_early"
    RATE_NOT_ACHIEVED = "rate_not_achieved"
    LATENCY_GROWS = "latency_grows"
    TOO_SHORT_TO_TELL = "too_short_to_tell"
    NOT_STREAMED = "not_streamed"
    HOP_BUFFERS = "hop_buffers"
    SHARED_READS = "shared_reads"
    SEVERAL_TOKENS_AN_EVENT = "several_tokens_an_event"
    CLAIMED_NOT_COUNTED = "claimed_not_counted"
    TOKENS_ESTIMATED = "tokens_estimated"
    LENGTHS_DIFFER = "lengths_differ"
    FINISH_REASONS_MIXED = "finish_reasons_mixed"
    PREEMPTED = "preempted"
    HELD_BEFORE_SERVER = "held_before_server"
    OTHER_TRAFFIC = "other_traffic"
    PREFIX_CACHE = "prefix_cache"
    WARMUP_MISSING = "warmup_missing"
    SIMULATED = "simulated"
    IMPOSSIBLE = "impossible"
    CLIENT_LIMIT = "client_limit"
    SUMS_DISAGREE = "sums_disagree"
    CONCURRENCY_DISAGREES = "concurrency_disagrees"
    TPOT_AGAINST_ITL = "tpot_against_itl"
    EVENTS_AGAINST_TOKENS = "events_against_tokens"
    PEAK_BELOW_MEAN = "peak_below_mean"
    MEAN_FAR_FROM_MEDIAN = "mean_far_from_median"
    SPEED_NO_THROUGHPUT = "speed_no_throughput"
    LIKE_A_LIMITER = "like_a_limiter"
    CONCURRENCY_NOT_REACHED = "concurrency_not_reached"
    PARTS_AGAINST_WHOLE = "parts_against_whole"
    QUEUE_OF_A_BURST = "queue_of_a_burst"
    FLAT_THROUGHPUT = "flat_throughput"
    SPEED_BESIDE_THROUGHPUT = "speed_beside_throughput"
    BACKEND_NO_ENGINE = "backend_no_engine"
    OTHER_CONDITIONS = "other_conditions"
    TOO_FEW_SAMPLES = "too_few_samples"
    PRINTED_TOO_COARSE = "printed_too_coarse"

    @property
    def spoken(self) -> str:
        """``fewer than asked``."""
        return self.value.replace("_", " ")


RULES: Mapping[DoubtKind, str] = {
    DoubtKind.WORKER_LOST: "A worker process died in mid-stage. Blocking.",
    DoubtKind.CLIENT_BOUND: (
        "Our own error, as far as it can be bounded, may reach 1 % of the median of TTFT, TPOT, ITL or E2EL, or 5 % of "
        "their p99, and 0.1 ms, and what so few answers leave open anyway; a tenth of a median where our own clock "
        "stamped. Blocking."
    ),
    DoubtKind.SENDS_LATE: (
        "With a schedule: through us it was drawn out by over 3 %, which blocks; or our lateness makes the median "
        "response time longer by over 1 %, or its p99 by 5 %, and by 1 ms; ten times as much and 5 ms block. Without "
        "one: slots waited for us for over 3 % of their time; 10 % block."
    ),
    DoubtKind.CLOCK_LAGGED: (
        "Our own clock stamped arrivals, and what is certain of them leaves room for 1 % of a median or 5 % of a p99."
    ),
    DoubtKind.SERVICE_LOST: (
        "A service of the stack that the requests go through was away during the stage. Blocking from a tenth of it on."
    ),
    DoubtKind.REQUESTS_FAILED: (
        "A request did not end well, limited ones apart. Blocking from a tenth on: no p90 is known then. Failed, "
        "limited and cut requests and those without a record count together for that; the largest part blocks for "
        "all. What was stopped on purpose, and was not sent or was cut then, does not count."
    ),
    DoubtKind.RATE_LIMITED: "An answer was 429. Blocking from a tenth on: the limiter has set what was measured.",
    DoubtKind.ERROR_TEXT: (
        "At least three good answers, and 5 % of them, open with the words of an error, most of them with the same."
    ),
    DoubtKind.RECORDS_MISSING: (
        "Fewer records can be read than the workers had requests end; or lines are damaged, and nobody knows what the "
        "workers had. Blocking from a tenth on."
    ),
    DoubtKind.FEWER_THAN_ASKED: (
        "Fewer prompts were taken up than asked, without a time limit or a stop. Blocking from a tenth on."
    ),
    DoubtKind.STOPPED_EARLY: "The stage was interrupted or cut by a fault.",
    DoubtKind.RATE_NOT_ACHIEVED: (
        "At a constant offered rate: requests ended at less than 97 % of it (middle 80 % of both), "
        "while the response time grew and our sends were on time."
    ),
    DoubtKind.LATENCY_GROWS: (
        "At a constant offered rate: the response time rose by over 10 % from the first to the last blocks of ten, "
        "and a rank test says that it is no chance (1 in 200); or, once the first requests were over, so did the "
        "number of those on their way, by over four roots of all."
    ),
    DoubtKind.TOO_SHORT_TO_TELL: (
        "At a constant offered rate and with at least ten good answers: over a third of them were still on their way "
        "when the last request was due, and neither of the two doubts before applies."
    ),
    DoubtKind.NOT_STREAMED: (
        "90 % of the answers of 8 tokens and more came in one piece; or their time after the first token is the same "
        "(within 10 %) although their lengths differ (by half). Or `run --doctor` saw it."
    ),
    DoubtKind.HOP_BUFFERS: (
        "The median TPOT is below 1 ms, and the answer after its first token takes under 5 % of the whole; "
        "or the median ITL is under a tenth of the median TPOT. Or `run --doctor` saw it."
    ),
    DoubtKind.SHARED_READS: (
        "Over 1 % of the gaps between events are not known, because events came while we looked away and share a stamp."
    ),
    DoubtKind.SEVERAL_TOKENS_AN_EVENT: (
        "Over 1.05 tokens an event: by the server, which tells them of each, or by its sums, which the text bears out."
    ),
    DoubtKind.CLAIMED_NOT_COUNTED: (
        "The server's output tokens differ by over 5 % and one an answer (its end token) from those of the text by the "
        "model's own tokenizer; where that has not counted, from the events with output. Blocking where it is over 1.5 "
        "times those of the text, or under 1 / 1.5, and the server does not call the rest reasoning. "
        "Or `run --doctor` saw it."
    ),
    DoubtKind.TOKENS_ESTIMATED: (
        "Output tokens were not counted by the server or by the model's own tokenizer. Or `run --doctor` saw it."
    ),
    DoubtKind.LENGTHS_DIFFER: (
        "Over 1 % of the answers are longer than asked, or shorter although they claim to have reached the length; "
        "where the length was prescribed (ignore_eos), any difference. By the server's count; where it has none, by "
        "that of the model's own tokenizer, to 5 % and one token. Or `run --doctor` saw it."
    ),
    DoubtKind.FINISH_REASONS_MIXED: "Besides the commonest finish reason, 5 % of the answers or more have others.",
    DoubtKind.PREEMPTED: (
        "By the server's metrics: it took running requests off their place at least once in a hundred requests."
    ),
    DoubtKind.HELD_BEFORE_SERVER: (
        "By the server's metrics, in five looks or more: running and waiting requests together were never over half of "
        "the mean concurrency, which was 4 or more."
    ),
    DoubtKind.OTHER_TRAFFIC: (
        "By the server's metrics: it began over 10 % more answers during the stage than were asked, and five or more."
    ),
    DoubtKind.PREFIX_CACHE: (
        "Over 20 % of the first turns' prompt tokens came from the server's cache; where the answers do not tell, over "
        "20 % of all that it looked up, by its metrics and without conversations; or, where neither is known, over 5 % "
        "of the prompts had been sent before."
    ),
    DoubtKind.WARMUP_MISSING: "No request went before the first stage.",
    DoubtKind.SIMULATED: "The model's name says that the engine is a simulated one: it begins with `simulated`.",
    DoubtKind.TOO_FEW_SAMPLES: "A percentile's 95 % interval has an open end: p99 needs 368 answers, p50 6.",
    DoubtKind.IMPOSSIBLE: (
        "Imported: a latency is below its own TTFT, a percentile below a lower one, a value outside of its minimum and "
        "maximum, or more requests were completed than sent. Blocking."
    ),
    DoubtKind.CLIENT_LIMIT: (
        "Imported: runs of different engines lost the same number of requests, of the same number asked."
    ),
    DoubtKind.SUMS_DISAGREE: "Imported: a throughput times the duration is not the count beside it, by over 3 %.",
    DoubtKind.CONCURRENCY_DISAGREES: (
        "Imported: the latencies' sum over the duration is not the mean concurrency (by over 10 %), or above the cap."
    ),
    DoubtKind.TPOT_AGAINST_ITL: "Imported: mean TPOT and mean ITL are apart by half of the smaller or more.",
    DoubtKind.EVENTS_AGAINST_TOKENS: (
        "Imported: the events that E2EL, TTFT and ITL tell of are over 1.5 times the tokens, or under 1 / 1.5."
    ),
    DoubtKind.PEAK_BELOW_MEAN: "Imported: a peak is below the mean of the same thing.",
    DoubtKind.MEAN_FAR_FROM_MEDIAN: "Imported: the mean TTFT is twice its median or more.",
    DoubtKind.SPEED_NO_THROUGHPUT: (
        "Imported: the only tokens a second are a mean of single requests' speeds, which is no throughput. Blocking."
    ),
    DoubtKind.PRINTED_TOO_COARSE: "Imported: a rate is printed so coarsely that rounding has moved it by over 5 %.",
    DoubtKind.LIKE_A_LIMITER: (
        "Imported: a tenth or more of the requests was lost, and exactly a round number a minute came through."
    ),
    DoubtKind.CONCURRENCY_NOT_REACHED: "Imported: fewer requests were sent in all than were allowed at once.",
    DoubtKind.PARTS_AGAINST_WHOLE: (
        "Imported: mean TTFT + mean TPOT x (mean output tokens - 1) is over 1.3 times the mean E2EL, or under 1 / 1.3."
    ),
    DoubtKind.QUEUE_OF_A_BURST: (
        "Imported, at no finite rate: the median TTFT of ten requests or more is over a quarter of the whole run's "
        "duration."
    ),
    DoubtKind.FLAT_THROUGHPUT: (
        "Imported: over three loads or more the output stays within 10 %, while concurrency and TTFT at least double."
    ),
    DoubtKind.SPEED_BESIDE_THROUGHPUT: (
        "Imported: mean speeds of single requests stand beside throughputs of a server. Blocking."
    ),
    DoubtKind.BACKEND_NO_ENGINE: (
        "Imported: runs of several engines have one `backend`, which is how the client spoke."
    ),
    DoubtKind.OTHER_CONDITIONS: "Files that are read together differ in model, dataset, lengths or client.",
}
"""When each is raised; the documentation's table."""


class Doubt(msgspec.Struct, frozen=True):
    """One doubt about one stage or run. ``blocking`` = the headline cannot stand (exit 3 where it is ours)."""

    kind: DoubtKind
    sentence: str
    remedy: str
    blocking: bool = False
    brief: str = ""
    """Its figures alone, for where the sentence was said of another already: ``28.45 of 35 (81 %)``."""
