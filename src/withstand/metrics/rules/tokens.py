"""Doubts about the work: whether the tokens that were counted are the tokens that were asked for and sent."""

from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.evidence import Lengths
from withstand.metrics.ledger import Check, exceeds
from withstand.metrics.rounding import counted, percent
from withstand.metrics.rules.case import Case, number
from withstand.record import TokensFrom

_DIFFERING_SHARE = 0.01
_MIXED_SHARE = 0.05
_FALSE_RATIO = 1.5
"""No tokenizer's own ways (end tokens, templates, a text cut anew) bring two counts of one text so far apart."""


def claimed_not_counted(case: Case) -> Doubt | None:
    """By the text of the answers where the model's own tokenizer has counted it, else by their events."""
    by_text = text_check(case)
    return _not_by_text(case, by_text) if by_text.answers else _not_by_events(case)


def text_check(case: Case) -> Check:
    """The server's count against that of the model's own tokenizer; without an answer where there is none."""
    unknown = Check(left="server", right="text")
    ledger = case.summary.ledger
    return ledger.check("server", "text") if ledger and ledger.text_exact else unknown


def events_check(case: Case) -> Check:
    """The server's count against the events that brought its tokens."""
    ledger = case.summary.ledger
    return ledger.check("server", "events") if ledger else Check(left="server", right="events")


def _not_by_text(case: Case, check: Check) -> Doubt | None:
    ledger = case.summary.ledger
    if not check.differs or ledger is None:
        return None
    false = _is_false(check, ledger.reasoning.tokens)
    is_said = check.more and ledger.reasoning.tokens
    reasoning = f" Of all its tokens {ledger.reasoning.tokens:,} are reasoning, it says." if is_said else ""
    return Doubt(
        DoubtKind.CLAIMED_NOT_COUNTED,
        f"The server claims {check.left_tokens:,} output tokens for {counted(check.answers, 'answer')}, and their "
        f"text has {check.right_tokens:,} by {ledger.text_by or 'the tokenizer'}{_ratio(check)}{_most(check)}."
        f"{reasoning} Tokens a second and TPOT are by the claim{', and cannot stand' if false else ''}.",
        "Find out what the server counts beside the text (hidden reasoning, another tokenizer), and compare only "
        "servers that count alike.",
        blocking=false,
    )


def _is_false(check: Check, reasoning: int) -> bool:
    """Too far off for a headline, and not because the server has counted reasoning that it does not send."""
    ratio = check.ratio
    if ratio is not None and 1 / _FALSE_RATIO <= ratio <= _FALSE_RATIO:
        return False
    return not check.more or exceeds(check.left_tokens - reasoning, check.right_tokens, check.answers)


def _not_by_events(case: Case) -> Doubt | None:
    check = events_check(case)
    if not check.differs:
        return None
    if _is_of_steps(check, case.evidence.step_tokens):
        return _not_sent(check)
    reading = (
        f"either events carry several tokens (then ITL is a time between events{tpot_effect(check)}), "
        "or the claim is too high"
        if check.more
        else "either events carry less than a token, or the claim is too low"
    )
    return Doubt(
        DoubtKind.CLAIMED_NOT_COUNTED,
        f"The server claims {check.left_tokens:,} output tokens, and {check.right_tokens:,} events with output came"
        f"{_ratio(check)}{_most(check)}: {reading}.",
        "Have the text counted by the model's tokenizer (--tokenizer) before you quote tokens a second.",
    )


def _is_of_steps(check: Check, step_tokens: int) -> bool:
    """Whether more is claimed than came, and an agent's calls of its model are told to have made as many."""
    claimed, answers = check.left_tokens, check.answers
    return check.more and not exceeds(claimed, step_tokens, answers) and not exceeds(step_tokens, claimed, answers)


def _not_sent(check: Check) -> Doubt:
    return Doubt(
        DoubtKind.CLAIMED_NOT_COUNTED,
        f"The agent claims {check.left_tokens:,} output tokens, all those of its model's calls by its steps, and "
        f"{check.right_tokens:,} events with output came{_ratio(check)}{_most(check)}: it does not send all that its "
        "model makes (a schema's JSON, calls of tools). TPOT is by the claim, ITL by what is sent.",
        "Read ITL for what a user gets; for the model's own pace, measure its engine without the agent.",
    )


def _ratio(check: Check) -> str:
    return f" (a ratio of {number(check.ratio)})" if check.ratio is not None else " (no event at all)"


def _most(check: Check) -> str:
    """Whom to look at, where it is not all of them."""
    if check.worst is None or check.differing == check.answers:
        return ""
    return f", {check.differing:,} of {counted(check.answers, 'answer')} differing, most of all request {check.worst}"


def tpot_effect(check: Check) -> str:
    """TPOT takes the first event for one token where nobody tells: what that comes to."""
    if not check.right_tokens:
        return ""
    first, all_tokens = check.left_tokens / check.right_tokens, check.left_tokens / check.answers
    if first >= all_tokens:
        return ""
    low = percent(first - 1, all_tokens - 1)
    return f", and TPOT, which takes the first event for one token, is {low} too low if that has as many as the others"


def tokens_estimated(case: Case) -> Doubt | None:
    """Nobody who knows has counted."""
    kinds = case.summary.tokens_from
    estimates = {TokensFrom.CHUNKS: "events"}
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


def _best_lengths(case: Case) -> tuple[Lengths, str]:
    """By the server, else by the model's own tokenizer; events are no witness, for one may hold several tokens."""
    by_server, by_text = case.evidence.lengths, case.evidence.text_lengths
    use_text = not by_server.answers and case.context.tokenizer_exact
    return (by_text, "the tokenizer's") if use_text else (by_server, "the server's")


def lengths_differ(case: Case) -> Doubt | None:
    """The work done is not the work that was asked for."""
    lengths, whose = _best_lengths(case)
    fixed = case.context.fixed_lengths
    wrong = lengths.differing if fixed else lengths.longer + lengths.cut
    if wrong <= _DIFFERING_SHARE * lengths.answers:
        return None
    share = f" ({percent(lengths.returned, lengths.requested)})" if lengths.requested else ""
    return Doubt(
        DoubtKind.LENGTHS_DIFFER,
        f"{wrong:,} of {counted(lengths.answers, 'answer')} ({percent(wrong, lengths.answers)}) have another length "
        f"than asked: {lengths.requested:,} tokens asked, {lengths.returned:,} returned by {whose} count{share}.",
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
