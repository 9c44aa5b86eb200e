"""What a client hears that is above its limits or its budget: pure."""

import math

from withstand.gateway.money.meter import Limit
from withstand.gateway.refusals import Refusal
from withstand.gateway.terms import Budget, KeyLimits

_PERIODS = {"day": "this day (UTC)", "month": "this month (UTC)", "total": "good"}


def refused(limit: Limit, wait_s: float, limits: KeyLimits) -> Refusal:
    """It may come back later."""
    retry_after_s = max(1, math.ceil(wait_s))
    what = {
        Limit.REQUESTS: f"{limits.rpm} requests in a minute",
        Limit.TOKENS: f"{limits.tpm} tokens in a minute",
        Limit.CONCURRENCY: f"{limits.concurrency} requests at once",
    }[limit]
    message = f"This key may have {what}; try again in {retry_after_s} s."
    return Refusal(429, limit.value, message, "rate_limit_exceeded", retry_after_s)


def over_budget(budget: Budget) -> Refusal:
    """It need not come back soon: OpenAI's code, and the line by which its clients do not retry."""
    spent = f"This key has spent its {budget.usd:g} USD for {_PERIODS[budget.per]}"
    message = f"{spent}; whoever runs the gateway can raise its budget."
    return Refusal(429, "insufficient_quota", message, "insufficient_quota", hopeless=True)
