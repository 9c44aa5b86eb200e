"""Whether an engine that is being started is ready: one GET, whose status is all that is read."""

import asyncio
import contextlib

from withstand.gateway.address import Origin

_ANSWER_S = 2.0


async def is_ready(origin: Origin, path: str) -> bool:
    """Whether it answers with 2xx."""
    question = f"GET {path} HTTP/1.1\r\nhost: {origin.host}:{origin.port}\r\nconnection: close\r\n\r\n"
    with contextlib.suppress(OSError, TimeoutError):  # nobody listens yet, or it is too busy
        async with asyncio.timeout(_ANSWER_S):
            said = await _first_line(origin, question.encode("ascii"))
            return said.startswith(b"HTTP/1.") and said[8:10] == b" 2"
    return False


async def is_taken(origin: Origin) -> bool:
    """Whether somebody listens there already."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(_ANSWER_S):
            _, writer = await asyncio.open_connection(origin.host, origin.port)
            writer.close()
            return True
    return False


async def _first_line(origin: Origin, question: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(origin.host, origin.port)
    try:
        writer.write(question)
        return await reader.read(64)
    finally:
        writer.close()
