"""A port of this machine for a service of ours."""

import errno
import socket

from withstand.errors import EngineError

HOST = "127.0.0.1"


def free_port(wanted: int | None = None) -> int:
    """``wanted``, or any that nobody listens on.

    Raises:
        EngineError: somebody listens on it, or it is not ours to take.
    """
    with socket.socket() as probe:
        # Connections of an earlier service that linger in TIME_WAIT are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, wanted or 0))
        except OSError as e:
            why = "is in use" if e.errno == errno.EADDRINUSE else f"cannot be had ({e.strerror})"
            raise EngineError(
                f"Port {wanted} of {HOST} {why}; choose another one, or none to get a free one."
            ) from None
        return int(probe.getsockname()[1])
