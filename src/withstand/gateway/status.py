"""One question on a connection of its own, and the status of the answer, of which nothing else is read."""

import asyncio
import ssl

from withstand.gateway.address import Origin

_LINE_BYTES_MAX = 1024


async def status_of(origin: Origin, question: bytes, context: ssl.SSLContext | None = None) -> int:
    """Of the answer.

    Raises:
        OSError: there is none.
        ValueError: this is not HTTP.
    """
    reader, writer = await asyncio.open_connection(origin.host, origin.port, ssl=context, limit=_LINE_BYTES_MAX)
    try:
        writer.write(question)
        line = await reader.readline()
    finally:
        writer.transport.abort()
    version, _, rest = line.partition(b" ")
    if not version.startswith(b"HTTP/1."):
        raise ValueError("This is not HTTP.")
    return int(rest[:3])
