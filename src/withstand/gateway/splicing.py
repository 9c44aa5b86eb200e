"""Where the pieces of streams go from engine to client by themselves: ``_splice.c``, where it could be built.

``WITHSTAND_SPLICE=off`` asks for none, and all pieces go through the event loop.
"""

import asyncio
import os
from typing import TYPE_CHECKING

from withstand.compiled import compiled

if TYPE_CHECKING:
    from withstand.gateway._splice import Splice, Splices
    from withstand.gateway.door import Door
    from withstand.gateway.link import Link

_splice = None if os.environ.get("WITHSTAND_SPLICE") == "off" else compiled("withstand.gateway._splice", __file__)


class Splicing:
    """Of one process. The kernel tells the loop when anything has come, and the loop lets all of it be passed on."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._splices: Splices | None = None
        if _splice is not None:
            self._splices = _splice.Splices()
            loop.add_reader(self._splices.fileno(), self._splices.turn)

    def join(self, link: "Link", door: "Door") -> "Splice | None":
        """What a link reads goes to the client, until something is not ordinary; None where that cannot be."""
        if self._splices is None or (to := door.descriptor) is None:
            return None
        try:
            return self._splices.join(link.descriptor, to, link, link.remember)
        except OSError:  # the kernel has a limit for what one user may wait for
            return None

    def close(self) -> None:
        """Give the descriptor back."""
        if self._splices is not None:
            self._loop.remove_reader(self._splices.fileno())
            self._splices.close()
