"""Whether an engine that is being started is ready: one GET, whose status is all that is read."""

import asyncio
import contextlib

from withstand.gateway.address import Origin
from withstand.gateway.status import status_of

_ANSWER_S = 2.0


async def is_ready(origin: Origin, path: str) -> bool:
    """Whether it answers with 2xx."""
    question = f"GET {path} HTTP/1.1\r\nhost: {origin.host}:{origin.port}\r\nconnection: close\r\n\r\n"
    with contextlib.suppress(OSError, TimeoutError, ValueError):  # nobody listens yet, or it is too busy
        async with asyncio.timeout(_ANSWER_S):
            return await status_of(origin, question.encode("ascii")) in range(200, 300)
    return False


async def is_taken(origin: Origin) -> bool:
    """Whether somebody listens there already."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(_ANSWER_S):
            _, writer = await asyncio.open_connection(origin.host, origin.port)
            writer.close()
            return True
    return False
