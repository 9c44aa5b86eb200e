"""Who may ask, and what a page may do. The server is on loopback, but every site that the user visits can send to it.

A name other than loopback's in ``Host`` is a site that has had its name lead here (DNS rebinding). What another site
asks for is refused by ``Sec-Fetch-Site``, which browsers set and scripts cannot; what makes something must say that it
comes from this very page. There are no CORS headers, so no other site can read an answer.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
_SAFE = frozenset({"GET", "HEAD"})
_OWN_SITE = frozenset({"same-origin", "none"})
_OWN_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
SANDBOXED = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""For pages out of a folder: whatever they are, they have no origin, and reach neither this server nor another."""
_ALWAYS = {
    "content-security-policy": _OWN_PAGE,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def why_refused(method: str, headers: Headers) -> str | None:
    """One sentence; None = it may be answered."""
    host = headers.get("host", "")
    if _name_of(host) not in HOSTS:
        return "This page is for 127.0.0.1, localhost and [::1] only."
    if headers.get("sec-fetch-site", "none") not in _OWN_SITE and not _is_visit(method, headers):
        return "Another site has asked for this."
    if method not in _SAFE and headers.get("origin") != f"http://{host}":
        return "This did not come from the page itself."
    return None


def _is_visit(method: str, headers: Headers) -> bool:
    """Somebody has followed a link; a page that was opened cannot be read by who linked to it."""
    return (
        method == "GET" and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    )


def _name_of(host: str) -> str | None:
    try:
        return urlsplit(f"http://{host}").hostname
    except ValueError:
        return None


class Guard:
    """Around the whole site."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or answer with the headers that each answer has."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers.setdefault(name, value)
            await send(message)

        why = why_refused(scope["method"], Headers(scope=scope))
        app = self._app if why is None else PlainTextResponse(why, status_code=403)
        await app(scope, receive, guarded)
