"""What an owner may set for keys: limits, budgets, prices; and where spans go. Typed parts of the configuration."""

from decimal import Decimal
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1)]
Dollars = Annotated[float, Meta(ge=0, le=1e9)]


class KeyLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of one key; None = as in ``[key_limits]``, and there = no limit."""

    rpm: Count | None = None
    """Requests in any 60 s."""
    tpm: Count | None = None
    """Tokens in any 60 s, prompts and answers together."""
    concurrency: Count | None = None
    """Requests under way at once."""

    def over(self, common: "KeyLimits") -> "KeyLimits":
        """These, and the common ones where none is given."""
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return msgspec.structs.replace(common, **given)


class Budget(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a key may spend; days and months are UTC's."""

    usd: Dollars
    per: Literal["day", "month", "total"] = "month"

    @property
    def amount(self) -> str:
        """As people write it: small ones too without an exponent."""
        return f"{Decimal(str(self.usd)).normalize():f} USD"


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """USD for a million tokens; ``cached_input`` None = as ``input``."""

    input: Dollars
    output: Dollars = 0.0
    cached_input: Dollars | None = None


class UsageConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``ask``: streams are asked for their usage, also where the client has not done so, which then sees it too."""

    ask: bool = False


class TelemetryConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where spans go: a collector of OTLP over HTTP, without /v1/traces."""

    otlp: Annotated[str, Meta(pattern="^https?://[!-~]+$")]
    service: str = "withstand-gateway"
