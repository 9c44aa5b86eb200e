"""Readiness of descriptors: epoll on Linux, poll elsewhere, with one face."""

import select
from typing import Final

READ: Final = select.POLLIN
WRITE: Final = select.POLLOUT
AT_ONCE: Final = 256
"""A report of so many may have left some out."""


class Poller:
    """``wait`` gives (descriptor, events) pairs."""

    def __init__(self) -> None:
        self._is_epoll = hasattr(select, "epoll")
        self._poll = select.epoll() if self._is_epoll else select.poll()
        self.register = self._poll.register
        self.modify = self._poll.modify
        self.unregister = self._poll.unregister

    def wait(self, timeout_s: float) -> list[tuple[int, int]]:
        """What is ready, after at most ``timeout_s``."""
        if self._is_epoll:
            return self._poll.poll(timeout_s, AT_ONCE)  # type: ignore[call-arg]
        return self._poll.poll(max(0.0, timeout_s) * 1000)

    @property
    def descriptor(self) -> int:
        """Readable when something is ready; -1 where there is no such thing."""
        return self._poll.fileno() if self._is_epoll else -1  # type: ignore[union-attr]

    def nest(self) -> "Poller":
        """Another, of which this one tells when it has something; this one itself where there is no such thing."""
        if not self._is_epoll:
            return self
        inner = Poller()
        self.register(inner.descriptor, READ)
        return inner

    def close(self) -> None:
        """Give the descriptor back."""
        if self._is_epoll:
            self._poll.close()  # type: ignore[union-attr]
