"""Doubts about how the answer came: whether the times between tokens are the engine's or a hop's."""

from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.evidence import LONG_ANSWER_TOKENS
from withstand.metrics.quantiles import percentile
from withstand.metrics.rounding import percent
from withstand.metrics.rules.case import Case, median_of, number
from withstand.metrics.rules.tokens import events_check, text_check, tpot_effect

_ANSWERS_MIN = 10
_MOST = 0.9
_LENGTHS_RATIO = 1.5
_DECODE_RATIO = 1.1
_INSTANT_TPOT_MS = 1.0
_INSTANT_SHARE = 0.05
_BURST_SHARE = 0.1
_BURST_GAPS_MIN = 100
UNSURE_SHARE = 0.01
_SEVERAL = 1.05


def buffering(case: Case) -> Doubt | None:
    """The gravest that holds: not streamed at all, of a fixed length of play, flushed at once, flushed in bursts."""
    if case.evidence.long_answers >= _ANSWERS_MIN:
        for rule in (_in_one_piece, _constant_decode, _flushed_at_once):
            if doubt := rule(case):
                return doubt
    return _in_bursts(case)


def _in_one_piece(case: Case) -> Doubt | None:
    evidence = case.evidence
    if evidence.in_one_piece < _MOST * evidence.long_answers:
        return None
    return Doubt(
        DoubtKind.NOT_STREAMED,
        f"{evidence.in_one_piece:,} of {evidence.long_answers:,} answers of {LONG_ANSWER_TOKENS} tokens or more "
        f"({percent(evidence.in_one_piece, evidence.long_answers)}) came in one piece: TTFT is the time of the whole "
        "answer, and no time between tokens was seen.",
        "Turn streaming on along the whole path (engine, gateway, proxy buffering), or read E2EL only.",
    )


def _constant_decode(case: Case) -> Doubt | None:
    tokens, decode = case.evidence.decoded_tokens, case.evidence.decode_ns
    few, many = percentile(tokens, 0.1), percentile(tokens, 0.9)
    short_ns, long_ns = percentile(decode, 0.1), percentile(decode, 0.9)
    if not short_ns or many < _LENGTHS_RATIO * few or long_ns > _DECODE_RATIO * short_ns:
        return None
    return Doubt(
        DoubtKind.NOT_STREAMED,
        f"E2EL - TTFT is {number(short_ns / 1e6)} … {number(long_ns / 1e6)} ms (p10 … p90) although the answers have "
        f"{number(few)} … {number(many)} tokens: a hop plays a finished answer at its own pace.",
        "Ask the engine directly, or make the hop pass the stream through.",
    )


def _flushed_at_once(case: Case) -> Doubt | None:
    tpot_ms, e2el_ms = median_of(case.summary.tpot), median_of(case.summary.e2el)
    decode_ms = percentile(case.evidence.decode_ns, 0.5) / 1e6
    if tpot_ms is None or e2el_ms is None or tpot_ms >= _INSTANT_TPOT_MS:
        return None
    if decode_ms >= _INSTANT_SHARE * e2el_ms:
        return None
    return Doubt(
        DoubtKind.HOP_BUFFERS,
        f"After its first token a median answer takes {number(decode_ms)} ms, {percent(decode_ms, e2el_ms)} of its "
        f"{number(e2el_ms)} ms, at {tpot_ms:.3f} ms a token: a hop holds the answer back and hands it on at once.",
        "Turn buffering off in every hop (proxy_buffering, compression, batching of the stream), or read E2EL only.",
    )


def _in_bursts(case: Case) -> Doubt | None:
    itl_ms, tpot_ms = median_of(case.summary.itl), median_of(case.summary.tpot)
    if (
        itl_ms is None
        or tpot_ms is None
        or (case.summary.itl.n or 0) < _BURST_GAPS_MIN
        or itl_ms >= _BURST_SHARE * tpot_ms
    ):
        return None
    return Doubt(
        DoubtKind.HOP_BUFFERS,
        f"The median gap between events is {itl_ms:.3f} ms, {percent(itl_ms, tpot_ms)} of the "
        f"{number(tpot_ms)} ms a token on average: events come in bursts, so the ITL shows a hop's batches.",
        "Turn off the batching of the stream in the hop or the server, or read TPOT instead of ITL.",
    )


def shared_reads(case: Case) -> Doubt | None:
    """Gaps that could not be seen: as many as lie beyond a p99, and the p99 may be among them."""
    unsure, gaps = case.summary.unsure_gaps, case.summary.unsure_gaps + (case.summary.itl.n or 0)
    if unsure <= UNSURE_SHARE * gaps or case.evidence.in_one_piece >= _MOST * max(1, case.evidence.long_answers):
        return None
    joined = case.evidence.events_a_read()
    whose = f" Most reads hold {joined} events: the server may write so many at once." if joined else ""
    unless = ", unless the server joins them" if joined else ""
    return Doubt(
        DoubtKind.SHARED_READS,
        f"{unsure:,} of {gaps:,} gaps ({percent(unsure, gaps)}) touch an event that lay in its socket while the client "
        f"looked away and shares the stamp of a later one: they are not known and are left out of the ITL.{whose}",
        f"Read TPOT beside ITL; a client that has a core whenever it needs one sees each event by itself{unless}.",
        brief=f"{unsure:,} of {gaps:,}",
    )


def several_tokens_an_event(case: Case) -> Doubt | None:
    """ITL is then a time between events, not between tokens."""
    told = case.evidence.told
    if told.tokens > _SEVERAL * told.events:
        return _several(case, (told.tokens, told.events), "", "; TPOT allows for the first event's")
    check = events_check(case)
    if check.more and text_check(case).answers and not text_check(case).differs:
        borne_out = " by its own count, which the text bears out"
        return _several(case, (check.left_tokens, check.right_tokens), borne_out, tpot_effect(check))
    return None


def _several(case: Case, counts: tuple[int, int], by: str, tpot: str) -> Doubt:
    tokens, events = counts
    each = f", {number(tokens / events)} in each" if events else ""
    per_token = (
        " or the ITL per token, not ITL"
        if case.summary.itl_per_token.n
        else ", not ITL (per token it is not known: the server does not tell the tokens of each event)"
    )
    return Doubt(
        DoubtKind.SEVERAL_TOKENS_AN_EVENT,
        f"The server put {tokens:,} tokens into {events:,} events{each}{by}: "
        f"ITL is the time between events, not between tokens{tpot}.",
        f"Compare TPOT{per_token}, with servers that send each token alone.",
    )


RULES = (buffering, shared_reads, several_tokens_an_event)
