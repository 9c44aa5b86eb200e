"""Doubts about the work: whether the tokens that were counted are the tokens that were asked for and sent."""

from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.rules.case import Case, counted, number, percent
from withstand.record import TokensFrom

_CLAIM_RATIO = 1.05
_DIFFERING_SHARE = 0.01
_MIXED_SHARE = 0.05


def claimed_not_counted(case: Case) -> Doubt | None:
    """Each answer may have one token without an event: its end token."""
    claimed = case.evidence.claimed
    more = claimed.tokens > _CLAIM_RATIO * claimed.events + claimed.answers
    fewer = claimed.events > _CLAIM_RATIO * claimed.tokens + claimed.answers
    if not more and not fewer:
        return None
    reading = (
        "either events carry several tokens, and ITL is a time between events, or the claim is too high"
        if more
        else "either events carry less than a token, or the claim is too low"
    )
    ratio = f"a ratio of {number(claimed.tokens / claimed.events)}" if claimed.events else "no event at all"
    return Doubt(
        DoubtKind.CLAIMED_NOT_COUNTED,
        f"The server claims {claimed.tokens:,} output tokens, and {claimed.events:,} events with output came "
        f"({ratio}): {reading}.",
        "Count the text of some answers with the model's tokenizer before you quote tokens a second.",
    )


def tokens_estimated(case: Case) -> Doubt | None:
    """Nobody who knows has counted."""
    kinds = case.summary.tokens_from
    estimates = {TokensFrom.CHUNKS: "events", TokensFrom.REQUESTED: "the length asked"}
    if not case.context.tokenizer_exact:
        estimates[TokensFrom.TOKENIZER] = f"the tokenizer {case.context.tokenizer or 'of this client'}"
    found = [f"{kinds[kind]:,} by {by}" for kind, by in estimates.items() if kinds.get(kind)]
    if not found:
        return None
    return Doubt(
        DoubtKind.TOKENS_ESTIMATED,
        f"The server did not count the output tokens of all {counted(case.summary.completed, 'answer')}: "
        f"{', '.join(found)}. Tokens a second and TPOT are estimates.",
        "Make the server send usage (stream_options.include_usage), or name the model's tokenizer.",
    )


def lengths_differ(case: Case) -> Doubt | None:
    """The work done is not the work that was asked for."""
    lengths = case.evidence.lengths
    fixed = case.context.fixed_lengths
    wrong = lengths.differing if fixed else lengths.longer + lengths.cut
    if wrong <= _DIFFERING_SHARE * lengths.answers:
        return None
    return Doubt(
        DoubtKind.LENGTHS_DIFFER,
        f"{wrong:,} of {counted(lengths.answers, 'answer')} ({percent(wrong, lengths.answers)}) have another length "
        f"than asked: {lengths.requested:,} tokens asked, {lengths.returned:,} returned "
        f"({percent(lengths.returned, lengths.requested)}).",
        "See whether a hop drops max_tokens or ignore_eos, and compare only runs with equal work.",
    )


def finish_reasons_mixed(case: Case) -> Doubt | None:
    """Answers of different kinds in one distribution."""
    reasons = case.summary.finish_reasons
    total = sum(reasons.values())
    rest = total - max(reasons.values(), default=0)
    if not rest or rest < _MIXED_SHARE * total:
        return None
    kinds = ", ".join(f"{n:,} {reason} ({percent(n, total)})" for reason, n in reasons.items())
    return Doubt(
        DoubtKind.FINISH_REASONS_MIXED,
        f"Answers ended for different reasons: {kinds}. E2EL and throughput depend on the mix.",
        "Prescribe the length (ignore_eos) or compare only runs with the same mix.",
    )


RULES = (claimed_not_counted, tokens_estimated, lengths_differ, finish_reasons_mixed)
