"""vLLM's way (NixlConnector): first prefill makes the KV cache and says where it waits, then decode fetches it.

The handle is for one use: decode frees the blocks, and one that asks for them again may be given what stands there
by then (vllm-project/vllm#52234). So a second try of decode begins with prefill.
"""

from withstand.gateway.disaggregation import bodies
from withstand.gateway.disaggregation.bodies import Whole
from withstand.gateway.disaggregation.leg import Leg
from withstand.gateway.disaggregation.split import Split


class Nixl(Split):
    """One leg after the other."""

    _handle: bytes | None = None

    def start(self) -> None:
        """Prefill, unless its work is still to be had or is not wanted."""
        if self.whole is not None or (self._handle is not None and not self._sent):
            self._passage.reach()
        elif (seat := self._choose()) is not None:
            self._handle, self._sent = None, False
            self._begin(seat, bodies.for_prefill(self._passage.outgoing.body_for(seat)))

    def decode_body(self, body: bytes) -> bytes:
        """With the handle, where there is one."""
        if self.whole is not None or self._handle is None:
            return bodies.without_handle(body)
        return bodies.with_handle(body, self._handle)

    def _prefilled(self, leg: Leg) -> None:
        self._handle = bodies.handle_of(leg.body)
        if self._handle is not None:
            self._passage.reach()
        else:
            leg.failure = Whole.NO_HANDLE
            self._give_up(leg)

    def _again(self) -> None:
        self.start()
