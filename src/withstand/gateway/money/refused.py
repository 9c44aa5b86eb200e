"""What a client hears that is above its limits or its budget: pure."""

import math

from withstand.gateway.money.meter import Limit
from withstand.gateway.refusals import Refusal
from withstand.gateway.terms import Budget, KeyLimits

_PERIODS = {"day": "this day (UTC)", "month": "this month (UTC)", "total": "good"}


def refused(limit: Limit, wait_s: float, limits: KeyLimits, tokens: int) -> Refusal:
    """It may come back later; ``tokens`` is what it is held to take."""
    retry_after_s = max(1, math.ceil(wait_s))
    what = {
        Limit.REQUESTS: f"{_requests(limits.rpm)} in a minute",
        Limit.TOKENS: f"{limits.tpm} tokens in a minute, and this request is held to take {tokens}",
        Limit.CONCURRENCY: f"{_requests(limits.concurrency)} at once",
    }[limit]
    message = f"This key may have {what}; try again in {retry_after_s} s."
    return Refusal(429, limit.value, message, "rate_limit_exceeded", retry_after_s, limit=limit.value)


def too_large(prompt: int, answer: int, tpm: int) -> Refusal:
    """It would never fit, so it need not come back as it is."""
    parts = f"{prompt + answer} tokens requested, about {prompt} for the prompt and {answer} for the answer"
    message = f"This request is too large: this key may have {tpm} tokens in a minute; {parts}. Send or ask for less."
    return Refusal(429, Limit.TOKENS.value, message, "rate_limit_exceeded", hopeless=True, limit=Limit.TOKENS.value)


def _requests(count: int | None) -> str:
    return f"{count} request{'' if count == 1 else 's'}"


def over_budget(budget: Budget) -> Refusal:
    """It need not come back soon: OpenAI's code, and the line by which its clients do not retry."""
    spent = f"This key has spent its {budget.amount} for {_PERIODS[budget.per]}"
    message = f"{spent}; whoever runs the gateway can raise its budget."
    return Refusal(429, "insufficient_quota", message, "insufficient_quota", hopeless=True, limit=Limit.BUDGET.value)
