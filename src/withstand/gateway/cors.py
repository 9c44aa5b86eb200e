"""Browsers' pages from elsewhere: which may ask, and the lines that their browser wants to see. Pure.

After the Fetch standard, "CORS protocol". Pages show a key of their own, never a cookie, so nothing is said of
credentials. The administration is for no page.
"""

from collections.abc import Callable

from withstand.gateway.config import Cors
from withstand.gateway.incoming import Head
from withstand.gateway.routes import ROUTES

_PATHS = frozenset(path.encode() for path in ROUTES)
_ANY = "*"
_END = b"\r\n\r\n"


def origin_of_page(told: Cors, head: Head) -> bytes | None:
    """What an answer is to allow; None = the request is of no page that may read it."""
    origin = head.header(b"origin")
    path = head.target.partition(b"?")[0]
    if origin is None or not (path in _PATHS or path.startswith(b"/v1/")):
        return None
    if _ANY in told.origins:
        return b"*"
    return origin if origin.decode("latin-1") in told.origins else None


def preflight(told: Cors, head: Head, allowed: bytes) -> bytes | None:
    """The answer to a browser that asks whether it may; None = it asks something else."""
    if head.method != b"OPTIONS" or head.header(b"access-control-request-method") is None:
        return None
    wanted = head.header(b"access-control-request-headers")
    headers = b"" if wanted is None else b"access-control-allow-headers: %b\r\n" % wanted
    return (
        b"HTTP/1.1 204 No Content\r\naccess-control-allow-origin: %b\r\naccess-control-allow-methods: GET, POST\r\n"
        b"%baccess-control-max-age: %d\r\nvary: origin, access-control-request-headers\r\n\r\n"
    ) % (allowed, headers, told.max_age_s)


def writing(write: Callable[[bytes], None], allowed: bytes) -> Callable[[bytes], None]:
    """Writes an answer, of which the first piece has the whole head, with our lines in place of an engine's."""
    ours = b"access-control-allow-origin: %b\r\naccess-control-expose-headers: *\r\nvary: origin" % allowed
    head_is_out = False

    def write_more(data: bytes) -> None:
        nonlocal head_is_out
        if head_is_out:
            write(data)
            return
        head_is_out = True
        head, end, rest = data.partition(_END)
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"access-control-")]
        write(b"\r\n".join([*lines, ours]) + end + rest)

    return write_more
