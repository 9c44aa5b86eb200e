"""Requests out of bytes, by httptools: several in one read, one in several reads. Knows HTTP, knows no socket."""

import httptools
import msgspec


class HttpRequest(msgspec.Struct, frozen=True):
    """One whole request; names of headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    keep_alive: bool
    arrival_ns: int
    complete_ns: int
    received_ns: int | None = None
    """By the kernel."""
    version: str = "1.1"
    """Of HTTP."""


class NotHttpError(Exception):
    """The bytes are no request."""


class Incoming:
    """One connection's reading side. ``close`` it: the parser and it hold each other."""

    def __init__(self) -> None:
        self.expects_continue = False
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._whole: list[HttpRequest] = []
        self._now_ns = 0
        self._received_ns: int | None = None
        self._begin()

    def feed(self, data: bytes, now_ns: int, received_ns: int | None = None) -> list[HttpRequest]:
        """The requests that are whole now, by bytes that were read now and had arrived at ``received_ns``.

        Raises:
            NotHttpError: the bytes are no request.
        """
        assert self._parser is not None
        self._now_ns, self._received_ns = now_ns, received_ns
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, UnicodeDecodeError) as e:
            raise NotHttpError(str(e)) from None
        whole, self._whole = self._whole, []
        return whole

    def close(self) -> None:
        """Let the parser go."""
        self._parser = None

    def _begin(self) -> None:
        self._target, self._body, self._arrival_ns = b"", list[bytes](), self._now_ns
        self._headers: dict[str, str] = {}

    # Called by httptools.

    def on_message_begin(self) -> None:
        """The first bytes of a request."""
        self._begin()

    def on_url(self, url: bytes) -> None:
        """A piece of the target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head has ended."""
        self.expects_continue = self._headers.get("expect", "").lower() == "100-continue"

    def on_body(self, data: bytes) -> None:
        """A piece of the body, out of its chunk."""
        self._body.append(data)

    def on_message_complete(self) -> None:
        """The last byte."""
        assert self._parser is not None
        self._whole.append(
            HttpRequest(
                method=self._parser.get_method().decode(),
                path=self._target.decode("latin-1").partition("?")[0],
                headers=self._headers,
                body=b"".join(self._body),
                keep_alive=self._parser.should_keep_alive(),
                arrival_ns=self._arrival_ns,
                complete_ns=self._now_ns,
                received_ns=self._received_ns,
                version=self._parser.get_http_version(),
            )
        )
