"""The words of an audit: what its claims are called, and how it lists names."""

from collections.abc import Mapping, Sequence

from withstand.audit.shape import Claim

CLAIM_TITLES: Mapping[Claim, str] = {
    Claim.TTFT: "TTFT",
    Claim.TTFT_P99: "TTFT p99",
    Claim.TPOT: "TPOT",
    Claim.ITL: "ITL",
    Claim.E2EL: "E2EL",
    Claim.REQUESTS: "req/s",
    Claim.TOKENS: "tok/s",
    Claim.SUCCESS: "success",
}
_NAMED_MAX = 4


def listed(names: Sequence[str]) -> str:
    """``a, b and 3 more``."""
    more = len(names) - _NAMED_MAX
    if more <= 1:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED_MAX])} and {more} more"
