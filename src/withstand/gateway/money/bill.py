"""What a request has used and what that costs: pure."""

from msgspec import Struct

from withstand.gateway.counts import Ending, Outcome
from withstand.gateway.terms import Price

NANO = 1_000_000_000
"""Costs are whole nano-dollars: sums of floats would drift apart between processes."""
_EVENTS_WITHOUT_TOKENS = 3
"""The role, the finish and ``[DONE]``."""
_SERVED = frozenset((Outcome.OK, Outcome.ENGINE_REFUSED, Outcome.ENGINE_ERROR, Outcome.CLIENT_LEFT))
_COST_NUSD_MAX = 1_000_000 * NANO
"""What an engine says is believed up to here, so that sums stay within the 64 bits of a database."""


class Bill(Struct, frozen=True):
    """``estimated``: the engine did not say all of it."""

    prompt: int = 0
    cached: int = 0
    """Of the prompt."""
    completion: int = 0
    estimated: bool = False

    @property
    def tokens(self) -> int:
        """What counts for a limit."""
        return self.prompt + self.completion


class Charge(Struct, frozen=True, gc=False):
    """What a request has cost in nano-dollars, None where its model has no price; ``estimated`` as in its bill."""

    nusd: int | None
    estimated: bool


def was_served(ending: Ending) -> bool:
    """An engine has answered, or was at work when the client left; who was turned away has had no request."""
    return ending.engine is not None and (ending.outcome in _SERVED or ending.first_byte_ns is not None)


def bill_of(ending: Ending, prompt_estimate: int, events: int) -> Bill:
    """What the engine says; else what it must have done at least.

    A client that leaves is charged its prompt too, else leaving would make prompts free. What an engine or the gateway
    has refused, or failed at before any answer, costs nothing.
    """
    if ending.status >= 300 or not was_served(ending):
        return Bill()
    at_least = max(0, events - _EVENTS_WITHOUT_TOKENS)
    if ending.output_tokens is None:
        completion = at_least
    else:  # of a stream that was cut, what it said last may be from its beginning
        completion = ending.output_tokens if ending.outcome is Outcome.OK else max(ending.output_tokens, at_least)
    return Bill(
        prompt=prompt_estimate if ending.prompt_tokens is None else ending.prompt_tokens,
        cached=min(ending.cached_tokens or 0, ending.prompt_tokens or 0),
        completion=completion,
        estimated=ending.prompt_tokens is None or (events > 0 and completion != ending.output_tokens),
    )


def cost_nusd(bill: Bill, price: Price | None) -> int:
    """In nano-dollars; nothing where the model has no price."""
    if price is None:
        return 0
    cached_usd = price.input if price.cached_input is None else price.cached_input
    per_million = (bill.prompt - bill.cached) * price.input + bill.cached * cached_usd + bill.completion * price.output
    return min(round(per_million * 1000), _COST_NUSD_MAX)
