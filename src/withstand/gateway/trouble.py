"""What was wrong with an engine when it was asked last, in words for its owner: pure."""

import socket
import ssl

from msgspec import Struct


class Trouble(Struct, frozen=True):
    """``why`` follows a colon. ``unreachable``: there was not even a connection."""

    why: str
    unreachable: bool = False


def why_of(e: OSError | ValueError) -> str:
    """Why there is no connection, or no answer."""
    if isinstance(e, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({e.verify_message})"
    if isinstance(e, ssl.SSLError):
        return (
            f"it speaks no TLS ({(e.reason or str(e)).replace('_', ' ').lower()}); should its url begin with http://?"
        )
    if isinstance(e, socket.gaierror):
        return f"its host's name cannot be resolved ({e.strerror})"
    if isinstance(e, ConnectionRefusedError):
        return "connection refused"
    if isinstance(e, TimeoutError):
        return "no answer in time"
    return getattr(e, "strerror", None) or str(e) or type(e).__name__
