"""A base URL as what a socket needs. Pure but for ``locate``, which finds the address that really answers."""

import errno
import os
import socket
from urllib.parse import urlsplit

import msgspec

from withstand.errors import SpecError, TargetError

_UNIX = ("unix:", "http+unix:")
_CLIENT_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM})


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where to connect, and what to say in the request line and the ``Host`` header."""

    tls: bool
    host: str
    port: int
    prefix: str = ""
    """The path before the API's own, without a trailing slash."""
    unix_path: str | None = None

    def url(self, path: str) -> str:
        """The path of a request: a prefix that ends in ``/v1`` is not doubled."""
        if self.prefix.endswith("/v1") and path.startswith("/v1/"):
            return self.prefix[:-3] + path
        return self.prefix + path

    def root_url(self, path: str) -> str:
        """The path of something beside the API, such as ``/tokenize``."""
        return self.prefix.removesuffix("/v1") + path

    @property
    def host_header(self) -> str:
        """The value of ``Host``; the port is left out where it is the scheme's own."""
        if self.unix_path:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """A socket address that has accepted a connection."""

    family: int
    sockaddr: tuple[str | int, ...] | str


def parse_address(base_url: str, whose: str = "target.base_url / --base-url") -> Address:
    """The address of ``http://…``, ``https://…`` or ``unix:/path.sock``; ``whose`` names it where it is none.

    Raises:
        SpecError: it is none of these.
    """
    for scheme in _UNIX:
        if base_url.startswith(scheme):
            path = base_url.removeprefix(scheme)
            return Address(tls=False, host="localhost", port=80, unix_path="/" + path.lstrip("/"))
    if not base_url.isprintable() or " " in base_url or "#" in base_url:
        raise SpecError(f"{whose} holds a blank, a # or a control character.")
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError as e:
        raise SpecError(f"{whose}: {base_url!r} is no URL: {e}.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SpecError(
            f"{whose}: {base_url!r} must begin with http://, https:// or unix:/, such as http://127.0.0.1:8000."
        )
    if port == 0:
        raise SpecError(f"{whose}: {base_url!r} names port 0, where nobody can listen.")
    if parts.username or parts.query:
        raise SpecError(
            f"{whose} must hold no user, password or query; give the key by --api-key-env or --api-key-file."
        )
    if parts.path.rstrip("/").endswith("/completions"):
        raise SpecError(f"{whose}: {base_url!r} names the request's own path; leave out what follows /v1.")
    tls = parts.scheme == "https"
    return Address(tls=tls, host=parts.hostname, port=port or (443 if tls else 80), prefix=parts.path.rstrip("/"))


def locate(address: Address, connect_s: float) -> Located:
    """The first of the host's addresses that accepts a connection.

    Raises:
        TargetError: none does; the text says why.
    """
    if address.unix_path:
        candidates = [Located(family=socket.AF_UNIX, sockaddr=address.unix_path)]
    else:
        candidates = _resolve(address)
    last = OSError()
    for located in candidates:
        try:
            _try(located, connect_s)
        except OSError as e:
            last = e
        else:
            return located
    where = address.unix_path or f"{address.host}:{address.port}"
    raise TargetError(f"No connection to {where}: {why(last)}. Is the server up, and the URL right?")


def _resolve(address: Address) -> list[Located]:
    try:
        infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as e:
        told = e.strerror if isinstance(e, OSError) else "it is no name of a host"
        raise TargetError(f"The host {address.host!r} is not known: {told}.") from None
    return [Located(family=family, sockaddr=sockaddr) for family, _, _, _, sockaddr in infos]  # type: ignore[arg-type]


def _try(located: Located, connect_s: float) -> None:
    with socket.socket(located.family, socket.SOCK_STREAM) as probe:
        probe.settimeout(connect_s)
        probe.connect(located.sockaddr)


def why(e: OSError) -> str:
    """An error of a socket in plain words."""
    if isinstance(e, TimeoutError):
        return "no answer within the time given"
    return (os.strerror(e.errno) if e.errno else str(e)).lower()


def is_our_limit(error_number: int) -> bool:
    """Whether a failed connection is this machine's lack (descriptors, ports, memory), not the server's."""
    return error_number in _CLIENT_ERRNOS
