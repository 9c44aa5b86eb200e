"""Looks at the requests of a stage as they pass: prompts sent before in this run, lengths that were prescribed.

An engine's prefix cache answers a repeated prompt faster; a prescribed length makes any other one the server's fault.
"""

import hashlib
from collections.abc import Iterator

from withstand.request import Request


class Census:
    """Remembers eight bytes of each prompt of a run."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()
        self.identical_prompts = 0
        self._free_lengths = 0

    def begin_stage(self) -> None:
        """Count from zero; what was sent before is still remembered."""
        self.identical_prompts = self._free_lengths = 0

    @property
    def fixed_lengths(self) -> bool:
        """Whether every request so far prescribed its answer's length."""
        return not self._free_lengths

    def watch(self, requests: Iterator[Request]) -> Iterator[Request]:
        """The same requests, counted as they pass."""
        for request in requests:
            digest = _digest(request)
            self.identical_prompts += digest in self._seen
            self._seen.add(digest)
            self._free_lengths += not request.ignore_eos
            yield request


def _digest(request: Request) -> bytes:
    digest = hashlib.blake2b(digest_size=8)
    for message in request.messages:
        digest.update((message.content or "").encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return digest.digest()
