"""``[target.serve]``: a server that is started for the length of a run."""

from typing import Annotated

import msgspec

from withstand.spec.arrivals import Seconds


class Serve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The command, without a shell; it must stay in the foreground and listen where ``base_url`` says."""

    argv: Annotated[tuple[Annotated[str, msgspec.Meta(min_length=1)], ...], msgspec.Meta(min_length=1)]
    env: dict[str, str] = {}
    """Laid over our own environment."""
    ready: Annotated[str, msgspec.Meta(pattern=r"^/[!-~]*$")] = "/v1/models"
    """The path that answers with 200 once it is ready."""
    ready_s: Seconds = 600.0
    """For how long it is waited for."""
    stop_s: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 10.0
    """How long it may take to end; then it is killed."""
