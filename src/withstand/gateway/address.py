"""Addresses: of an engine, taken apart, and of the gateway itself."""

import contextlib
import errno
import os
import socket
from functools import cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from msgspec import Struct

from withstand.errors import UsageError

_PORTS = {"http": 80, "https": 443}
_ALL = {"0.0.0.0", "::"}  # noqa: S104  nothing is bound to it here
"""Whoever listens there listens at every address of this machine; who asks there asks this machine."""


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
    scheme, found, rest = listen.partition("://")
    if found:
        raise UsageError(f"listen: {listen!r} is a URL; leave out {scheme}://, and write {rest.rstrip('/')}.")
    host, _, port = listen.rpartition(":")
    if not _is_name(host) or not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise UsageError(f"listen: {listen!r} is no address; write HOST:PORT, such as 127.0.0.1:8080.")
    return host.strip("[]"), int(port)


def _is_name(host: str) -> bool:
    """Or an address: what may be looked up at all."""
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False


def check_elsewhere(origin: Origin, listen: str) -> None:
    """Whether an engine is somebody else than the gateway that listens there.

    Raises:
        UsageError: it would ask itself.
    """
    host, port = split_listen(listen)
    theirs, ours = _addresses(origin.host), _addresses(host)
    if ours & _ALL:
        ours |= _addresses("localhost") | _addresses(socket.gethostname())
    if origin.port == port and not theirs.isdisjoint(ours | _ALL):
        cure = "name the engine's own address, or have the gateway listen at another port"
        raise UsageError(f"{origin.url} is this gateway itself; {cure}.")


def _addresses(host: str) -> set[str]:
    """By which it is reached from this machine, as far as is known without asking anybody else."""
    if host == "localhost":
        return {"127.0.0.1", "::1"}
    if host.lower() == socket.gethostname().lower():
        return _own_addresses()
    with contextlib.suppress(OSError):
        host = socket.inet_ntoa(socket.inet_aton(host))  # 127.1 is one, too
    try:
        address = ip_address(host)
    except ValueError:
        return {host.lower()}
    return {str(getattr(address, "ipv4_mapped", None) or address)}


@cache
def _own_addresses() -> set[str]:
    """Of this machine's name."""
    name = socket.gethostname()
    try:
        return {str(address[0]) for *_, address in socket.getaddrinfo(name, None)}
    except OSError:
        return {name.lower()}


def not_to_be_had(listen: str, e: OSError) -> UsageError:
    """In asyncio's words the address would stand twice; what is wrong with a name has a number of its own."""
    why = os.strerror(e.errno) if e.errno and e.errno > 0 else str(e.strerror)
    cure = "Choose another address, or end what has this one"
    if isinstance(e, socket.gaierror) or e.errno == errno.EADDRNOTAVAIL:
        cure = "Choose an address of this machine, such as 127.0.0.1:8080"
    elif e.errno == errno.EACCES:
        cure = "Choose another port, such as 8080"
    return UsageError(f"{listen} cannot be listened on: {why.lower()}. {cure}.")


def is_local(host: str) -> bool:
    """Whether nobody else can reach it."""
    return host in {"127.0.0.1", "localhost", "::1"}
