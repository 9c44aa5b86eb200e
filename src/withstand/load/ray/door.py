"""Who stands at a cluster's door, asked before Ray is: it takes half a minute to find out that nobody does.

It knows an address, a socket and two harmless questions; no token, and nothing of what Ray is to do there.
"""

import socket
from typing import NamedTuple
from urllib.parse import urlsplit

from withstand.errors import MeasureError
from withstand.load.address import why

_CLIENT = "ray://"
_CLIENT_PORT = 10001
_KNOCK_S = 5.0
_OPTIONS = (("grpc.enable_http_proxy", 0),)
_ASK_HEAD = "/ray.rpc.NodeInfoGcsService/CheckAlive"
_ASK_CLIENT_SERVER = "/ray.rpc.RayletDriver/KVExists"


class Door(NamedTuple):
    """Where a cluster can be reached."""

    host: str
    port: int
    client: bool
    """Ray's client server stands there, not the head itself."""


def door_of(address: str) -> Door | None:
    """The door that an address names; None = it names none, and Ray knows what is meant.

    Raises:
        MeasureError: it is no address.
    """
    client = address.startswith(_CLIENT)
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        port = parts.port or (_CLIENT_PORT if client else None)
    except ValueError as e:
        raise MeasureError(f"--fleet: {address!r} is no address of a Ray cluster: {e}.") from None
    return Door(parts.hostname, port, client) if parts.hostname and port else None


def knock(door: Door, address: str) -> None:
    """See that somebody is in.

    Raises:
        MeasureError: nobody is.
    """
    try:
        socket.create_connection((door.host, door.port), _KNOCK_S).close()
    except OSError as e:
        raise MeasureError(
            f"No Ray cluster answers at {address}: {why(e)}. Is its head up (`ray start --head`), and --fleet right?"
        ) from None


def wants_token(door: Door) -> bool | None:
    """Whether they let in nobody without a token: we ask something without any.

    None = they do not say, as behind TLS, or do not mind, as a client server does.
    """
    try:
        import grpc  # noqa: PLC0415 - comes with Ray's client, and is not needed where the cluster is ours
    except ImportError:
        return None
    host = f"[{door.host}]" if ":" in door.host else door.host
    with grpc.insecure_channel(f"{host}:{door.port}", options=_OPTIONS) as channel:
        try:
            channel.unary_unary(_ASK_CLIENT_SERVER if door.client else _ASK_HEAD)(b"", timeout=_KNOCK_S)
        except grpc.RpcError as e:
            return True if e.code() is grpc.StatusCode.UNAUTHENTICATED else None
    return False
