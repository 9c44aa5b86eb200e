"""How what one process is asked for reaches all: of a gateway that is one process, this one."""

from typing import Any, Protocol

from withstand.gateway.control.changes import made
from withstand.gateway.exposition import exposition
from withstand.gateway.house import House


class Crew(Protocol):
    """What the control plane sees of the other workers."""

    async def make(self, kind: str, told: str) -> dict[str, Any]:
        """Have everybody make a change; what there is then.

        Raises:
            Refused, UsageError: it cannot be made, and nobody has.
        """

    async def page(self) -> str:
        """The metrics of all."""


class Alone:
    """There are no others."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def make(self, kind: str, told: str) -> dict[str, Any]:
        """Make it."""
        return made(self._house, kind, told)

    async def page(self) -> str:
        """Our own metrics."""
        return page_of(self._house)


def page_of(house: House) -> str:
    """One process' metrics."""
    house.ledger.write_down()
    return exposition(house.counts, house.roster, house.now_s(), house.gauges())
