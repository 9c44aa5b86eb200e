"""How a server becomes cold again, so that a stage may begin with one."""

from typing import Literal

import msgspec

from withstand.spec.arrivals import Seconds


class Cold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Done before each stage that has ``cold``."""

    by: Literal["gateway", "restart", "pause"] | None = None
    """``gateway``: by its metrics our gateway has stopped its engines, which were idle; ``restart``: ``[target.serve]``
    is started anew; ``pause``: nothing is sent for ``pause_s``. None = whichever the plan has what it takes for."""
    pause_s: Seconds | None = None
    """After so long without a request the server is taken for cold."""
    within_s: Seconds = 900.0
    """How long the gateway is waited for."""

    def way(self, *, serves: bool) -> str:
        """What is meant; ``serves``: the plan starts the server."""
        return self.by or ("restart" if serves else "pause" if self.pause_s is not None else "gateway")
