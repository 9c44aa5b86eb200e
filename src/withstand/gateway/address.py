"""Addresses: of an engine, taken apart, and of the gateway itself."""

from urllib.parse import urlsplit

from msgspec import Struct

from withstand.errors import UsageError

_PORTS = {"http": 80, "https": 443}


class Origin(Struct, frozen=True):
    """Where an engine is, and what stands before every path."""

    tls: bool
    host: str
    port: int
    prefix: str = ""

    @property
    def name(self) -> str:
        """As people and labels call it: ``host:port``, and the prefix."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}{self.prefix}"

    @property
    def url(self) -> str:
        """As the configuration has it."""
        return f"http{'s' if self.tls else ''}://{self.name}"


def origin_of(url: str) -> Origin:
    """The parts of an engine's URL.

    Raises:
        UsageError: it is no URL of an engine.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as e:
        raise UsageError(f"{url!r} is no URL: {e}.") from None
    if parts.scheme not in _PORTS or not parts.hostname or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError(f"{url!r} is no URL of an engine; write it as http://HOST:PORT.")
    if parts.query or parts.fragment or parts.username:
        raise UsageError(f"{url!r} says more than an address; an engine's key goes into api_key_env.")
    prefix = parts.path.rstrip("/")
    if prefix.endswith("/v1"):
        raise UsageError(f"{url!r} ends with /v1, which every request's path has already; leave it out.")
    return Origin(parts.scheme == "https", parts.hostname, _PORTS[parts.scheme] if port is None else port, prefix)


def split_listen(listen: str) -> tuple[str, int]:
    """``127.0.0.1:8080``, ``[::1]:8080`` → (host, port); 0 = a free one.

    Raises:
        UsageError: it is no address.
    """
    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise UsageError(f"listen: {listen!r} is no address; write HOST:PORT, such as 127.0.0.1:8080.")
    return host.strip("[]"), int(port)


def is_local(host: str) -> bool:
    """Whether nobody else can reach it."""
    return host in {"127.0.0.1", "localhost", "::1"}
