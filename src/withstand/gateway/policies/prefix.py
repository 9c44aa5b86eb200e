"""A request to the engine that has most of its prompt in the cache, as far as the gateway knows, while it has room.

Known is what was sent where; what an engine has thrown out since, or was sent by others, is not. For each engine the
blocks of prompts (``chain``) are remembered up to a number, the latest ones, as an engine's own cache does it. SGLang's
router leaves its tree when loads differ by much and takes the least busy engine; vLLM's production-stack has no such
limit, and one beginning that all share overloads one engine there. Here an engine that is above the bound is passed
over, and so is one that is half way to it while another has next to nothing; who is asked instead knows the prompt
from then on.
"""

import random
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

from withstand.gateway.asked import Asked
from withstand.gateway.engine import Engine, Seat
from withstand.gateway.policies.bounds import starving, within
from withstand.gateway.policies.chain import Chain, bytes_in, chain_of
from withstand.gateway.policies.lots import LeastInFlight
from withstand.gateway.policies.policy import Choose, Header

BLOCKS_MAX = 32_768
"""For each engine: 8 MB of prompts or more, in about 5 MB."""


class Prefix:
    """``asked_bytes`` and ``known_bytes``: of all prompts, and what of them an engine was sent before."""

    def __init__(self, bound: float, dice: random.Random, blocks_max: int = BLOCKS_MAX) -> None:
        self.asked_bytes = 0
        self.known_bytes = 0
        self._bound = bound
        self._otherwise = LeastInFlight(dice)
        self._blocks_max = blocks_max
        self._known: dict[Engine, Known] = {}

    def chooser(self, asked: Asked, header: Header) -> Choose:  # noqa: ARG002  only the prompt counts
        """By the beginning of the request's prompt."""
        return partial(self._choose, chain_of(asked.prompt_parts()))

    def _choose(self, chain: Chain, seats: Sequence[Seat], now_s: float) -> Seat:
        if not chain:
            return self._otherwise.choose(seats, now_s)
        free = within(seats, now_s, self._bound)
        depths = [self._of(seat.engine).depth(chain) for seat in free]
        deepest = max(depths)
        best = [seat for seat, depth in zip(free, depths, strict=True) if depth == deepest]
        chosen = self._otherwise.choose(best, now_s)
        chosen = starving(seats, now_s, self._bound, chosen) or chosen
        known = self._of(chosen.engine)
        self.asked_bytes += bytes_in(len(chain))
        self.known_bytes += bytes_in(known.depth(chain))
        known.add(chain)
        return chosen

    def _of(self, engine: Engine) -> "Known":
        known = self._known.get(engine)
        if known is None or known.since_s != engine.since_s:  # it was started anew, and its cache is empty
            self._known = {there: of for there, of in self._known.items() if not there.removed}
            known = self._known[engine] = Known(self._blocks_max, engine.since_s)
        return known


class Known:
    """What one engine was sent since a time: the latest blocks, at most so many."""

    def __init__(self, blocks_max: int, since_s: float) -> None:
        self.since_s = since_s
        self._blocks_max = blocks_max
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        """How many."""
        return len(self._blocks)

    def depth(self, chain: Chain) -> int:
        """How many of its blocks are known: none is known without those before it (see ``add``)."""
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high + 1) // 2
            if chain[middle - 1] in self._blocks:
                low = middle
            else:
                high = middle - 1
        return low

    def add(self, chain: Chain) -> None:
        """It is sent these. The first is the latest to be touched, so that what is dropped has nothing behind it."""
        for block in reversed(chain):
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while len(self._blocks) > self._blocks_max:
            self._blocks.popitem(last=False)
