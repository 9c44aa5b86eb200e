"""This machine's limits against the load asked, checked before anything is sent.

A public comparison lost 985 of 2,000 requests to a limit of 1,024 open files and printed the rest as a result.
"""

import resource
from pathlib import Path

from withstand.errors import ClientLimitError

_OWN_DESCRIPTORS = 64
_COMFORTABLE = 65_536
_PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def ensure_descriptors(connections: int | None) -> int:
    """Raise the soft limit of open files as far as is useful and allowed; children inherit it. The limit now.

    ``connections`` is how many one worker may have open at once; None = not known beforehand.

    Raises:
        ClientLimitError: the hard limit is below what is needed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = (connections or 0) + _OWN_DESCRIPTORS
    top = _COMFORTABLE + needed if hard == resource.RLIM_INFINITY else hard
    if needed > top:
        raise ClientLimitError(
            f"{connections:,} connections at once need {needed:,} open files, but this process may have {top:,}. "
            f"Raise the hard limit (`ulimit -Hn {needed}` as root), use more --workers, or lower "
            "--max-concurrency (or --preconnect)."
        )
    wanted = min(top, max(soft, needed, _COMFORTABLE))
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted)


def ensure_ports(connections: int | None, *, over_tcp: bool) -> None:
    """All connections go to one address, so each needs a local port of its own.

    Raises:
        ClientLimitError: there are fewer.
    """
    if connections is None or not over_tcp:
        return
    ports = local_ports()
    if ports is not None and connections > ports:
        raise ClientLimitError(
            f"{connections:,} connections to one address need as many local ports, but this machine has {ports:,}. "
            "Lower --max-concurrency (or --preconnect), or widen net.ipv4.ip_local_port_range."
        )


def local_ports() -> int | None:
    """How many connections to one address this machine can have; None = it does not tell."""
    try:
        low, high = _PORT_RANGE.read_text("ascii").split()
    except (OSError, ValueError):
        return None
    return int(high) - int(low) + 1
