"""Whom connections belong to, and where they lead: what a connection knows of the world around it."""

import ssl
from typing import TYPE_CHECKING, Protocol

import msgspec

from withstand.load.address import Address, Located
from withstand.load.exchange import Exchange
from withstand.load.loop import Loop
from withstand.load.selfcheck import SelfCheck
from withstand.load.stamps import StampClock
from withstand.spec import Timeouts

if TYPE_CHECKING:
    from withstand.load.connection import Connection


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """All that a connection needs to know of where it leads."""

    address: Address
    located: Located
    context: ssl.SSLContext | None
    timeouts: Timeouts


class Owner(Protocol):
    """Whom a connection belongs to; it hears of everything that outlives an exchange."""

    route: Route
    loop: Loop
    stamps: StampClock
    check: SelfCheck

    def opened(self, connection: "Connection") -> None:
        """It has a descriptor."""

    def closed(self, connection: "Connection") -> None:
        """Its descriptor is gone."""

    def free(self, connection: "Connection") -> None:
        """It can serve again."""

    def retry(self, exchange: Exchange) -> None:
        """A reused connection was closed, or held what nobody had asked for: send this over a fresh one."""
