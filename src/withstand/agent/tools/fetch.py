"""``fetch``: pages from an allow-list. Each hop is checked: its address as written, and the numbers that it leads to.

The connection goes to the very number that was checked, so a name that changes its mind in between gains nothing.
"""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import httpx

from withstand.agent.config import HttpConfig
from withstand.agent.tools.allowed import is_public, may_fetch, origin
from withstand.agent.tools.tool import Tool, ToolError

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_UNSEEN = frozenset({"script", "style", "head", "noscript", "template"})
_BLOCKS = frozenset({"p", "br", "div", "li", "tr", "h1", "h2", "h3", "h4", "section", "article", "pre"})


def fetch(config: HttpConfig) -> Tool:
    """The tool."""

    async def run(url: str) -> str:
        with _told():
            return await fetched(url, config)

    return Tool(
        name="fetch",
        purpose=f"Fetches a web page. Allowed: {', '.join(config.allow)}.",
        argument="url",
        meaning="the page's whole address",
        run=run,
    )


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except httpx.TimeoutException:
        raise ToolError("The page did not come in time.") from None
    except httpx.ConnectError:
        raise ToolError("The page's server cannot be reached.") from None
    except httpx.HTTPError:
        raise ToolError("The page broke off.") from None


async def fetched(url: str, config: HttpConfig) -> str:
    """The page's text.

    Raises:
        ToolError: it is not allowed, not there, or no text.
        httpx.HTTPError: the connection failed.
    """
    async with httpx.AsyncClient(trust_env=False, follow_redirects=False) as client:
        for _ in range(config.redirects + 1):
            if not may_fetch(url, config.allow):
                raise ToolError(f"{url[:200]} is not allowed; only {', '.join(config.allow)}.")
            answer = await client.send(await _pinned(url, config, client), stream=True)
            try:
                if answer.status_code not in _REDIRECTS:
                    return await _text(answer, config.bytes_max)
                url = urljoin(url, answer.headers.get("location", ""))
            finally:
                await answer.aclose()
    raise ToolError(f"It was redirected more than {config.redirects} times.")


async def _pinned(url: str, config: HttpConfig, client: httpx.AsyncClient) -> httpx.Request:
    """A request to the number that was checked, under the name that was asked for."""
    _, host, port = origin(urlsplit(url))
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise ToolError(f"There is no host {host}.") from None
    addresses = [str(each[4][0]) for each in found]
    if not config.private and not all(is_public(address) for address in addresses):
        raise ToolError(f"{host} is not on the public Internet, which is not allowed.")
    return client.build_request(
        "GET",
        httpx.URL(url).copy_with(host=addresses[0].partition("%")[0]),
        headers={"host": urlsplit(url).netloc, "accept": "text/*, application/json", "accept-encoding": "identity"},
        extensions={"sni_hostname": host},
    )


async def _text(answer: httpx.Response, bytes_max: int) -> str:
    kind = answer.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if answer.status_code != 200:
        raise ToolError(f"The page answered with status {answer.status_code}.")
    if not (kind.startswith("text/") or kind.endswith(("json", "xml"))) or "content-encoding" in answer.headers:
        raise ToolError(f"The page is no text, but {kind}.")
    data = b""
    async for piece in answer.aiter_raw():
        data += piece
        if len(data) >= bytes_max:
            break
    text = data[:bytes_max].decode(answer.charset_encoding or "utf-8", "replace")
    return plain(text) if "html" in kind else text


def plain(html: str) -> str:
    """What a reader of the page sees, a block a line."""
    page = _Page()
    page.feed(html)
    page.close()
    lines = (" ".join(line.split()) for line in "".join(page.parts).splitlines())
    return "\n".join(line for line in lines if line)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unseen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag in _UNSEEN:
            self._unseen.append(tag)
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._unseen:
            del self._unseen[self._unseen.index(tag) :]
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(data)
