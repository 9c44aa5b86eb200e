"""Which addresses may be fetched: pure rules over URLs and numbers, without asking anybody."""

import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

_PORTS = {"http": 80, "https": 443}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL = ipaddress.ip_network("2000::/3")
"""All that IANA gives out of IPv6; what lies beside it carries IPv4, or stays in a network."""
_EXAMPLES = ipaddress.ip_network("3fff::/20")
"""RFC 9637; Python knows it from 3.13 on."""
_CUNNING = re.compile(r"(?i)%2e|%2f|%5c|\\|[\x00-\x20\x7f]")
_CUNNING_PATH = re.compile(r"(?i)%25|%3b|;")
"""In a path: ``..;`` climbs in Tomcat, ``%252e`` where two servers unescape one after the other."""
_OTHERS = frozenset({ipaddress.ip_address("168.63.129.16")})
"""Public by its number, and a cloud's own all the same: Azure's metadata and DNS."""


def split_url(url: str) -> SplitResult | None:
    """None where it is no plain web address: user names, dots that climb, and escapes of slashes are not."""
    try:
        parts = urlsplit(url)
        plain = parts.scheme in _PORTS and parts.hostname and parts.username is None and parts.password is None
        _ = parts.port
    except ValueError:
        return None
    climbs = any(part and not part.strip(".") for part in parts.path.split("/"))
    cunning = _CUNNING.search(url) or _CUNNING_PATH.search(parts.path)
    return parts if plain and not climbs and not cunning else None


def may_fetch(url: str, allow: Sequence[str]) -> bool:
    """Whether it begins with one of ``allow``: same scheme, host and port, and a path that is it or lies below it."""
    asked = split_url(url)
    return asked is not None and any(_covers(split_url(each), asked) for each in allow)


def _covers(given: SplitResult | None, asked: SplitResult) -> bool:
    if given is None or origin(given) != origin(asked):
        return False
    base, path = given.path or "/", asked.path or "/"
    return path == base or path.startswith(base if base.endswith("/") else base + "/")


def origin(parts: SplitResult) -> tuple[str, str, int]:
    """(Scheme, host, port)."""
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or _PORTS[parts.scheme]


def is_public(address: str) -> bool:
    """Whether the Internet knows it, also through the ways in which IPv6 carries an IPv4 address."""
    number = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(number, ipaddress.IPv6Address):
        inner = number.ipv4_mapped or number.sixtofour or (number.teredo[1] if number.teredo else None)
        if number in _NAT64:
            inner = ipaddress.IPv4Address(int(number) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(str(inner))
        if number not in _GLOBAL or number in _EXAMPLES:
            return False
    return number.is_global and not number.is_multicast and number not in _OTHERS
