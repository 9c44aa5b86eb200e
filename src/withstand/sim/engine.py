"""The steps of an engine that batches continuously. Virtual time: who runs it says what time it is.

Each step decodes one token of every sequence that has its prompt, then computes prompts in order of arrival, as far as
the budget goes. Who comes first is taken first, when there is room for the prompt in the KV cache. When there is none
for the next token, the last one taken loses its place and is computed again (as vLLM V1 does it).
"""

from collections import deque
from collections.abc import Hashable, Sequence
from itertools import islice

import msgspec

from withstand.sim.blocks import Blocks
from withstand.sim.parameters import Parameters


class Job(msgspec.Struct, kw_only=True):
    """A request on its way. ``hashes`` are of the prompt's full blocks, each of all tokens up to its end."""

    number: int
    prompt_tokens: int
    output_tokens: int
    hashes: tuple[Hashable, ...] = ()
    arrived_ns: int = 0
    begun_ns: int | None = None
    """When it was first taken."""
    fetched: bool = False
    """Another engine has computed its prompt; all but the last token is here."""
    said: int = 0
    """Tokens of the answer."""
    computed: int = 0
    """Tokens whose KV is in the cache."""
    cached_tokens: int | None = None
    """Of the prompt, found when it was first taken."""
    named: list[Hashable] = []
    nameless: int = 0

    @property
    def tokens(self) -> int:
        """That must be in the cache before the next one can be said."""
        return self.prompt_tokens + self.said

    @property
    def is_decoding(self) -> bool:
        """Only the token that was said last is to be computed."""
        return self.said > 0 and self.computed == self.tokens - 1


class Step(msgspec.Struct, frozen=True):
    """One step under way."""

    started_ns: int
    ends_ns: int
    parts: tuple[tuple[Job, int], ...]
    """(Job, how many of its tokens are computed)."""


class Engine:
    """``add`` and ``drop`` at any time; ``begin`` when no step is under way, ``finish`` when its time has come."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.blocks = Blocks(parameters.kv_blocks)
        self.waiting: deque[Job] = deque()
        self.running: list[Job] = []
        self.preemptions = 0
        self.prefix_queries = 0
        self.prefix_hits = 0

    @property
    def kv_share(self) -> float:
        """Of the cache, held."""
        return self.blocks.used / self.blocks.count

    def fits(self, job: Job) -> bool:
        """Whether it could be answered if it were alone."""
        tokens = job.prompt_tokens + job.output_tokens
        return tokens <= self.parameters.context and self._blocks_of(tokens) <= self.blocks.count

    def add(self, job: Job) -> None:
        """It waits from now on; it must fit."""
        assert self.fits(job)
        self.waiting.append(job)

    def drop(self, job: Job) -> None:
        """Nobody wants its answer any more."""
        if job in self.running:
            self.running.remove(job)
            self._let_go(job)
        elif job in self.waiting:
            self.waiting.remove(job)

    def begin(self, now_ns: int) -> Step | None:
        """The next step; None = there is nothing to do."""
        parts = self._decoding() if self.parameters.chunked_prefill else []
        budget = self.parameters.max_batched_tokens - len(parts)
        self._prefill(parts, budget, now_ns)
        if not parts:
            parts = self._decoding()
        if not parts:
            return None
        decoding = sum(job.is_decoding for job, _ in parts)
        prefill = sum(count for job, count in parts if not job.is_decoding)
        return Step(now_ns, now_ns + self.parameters.step_ns(decoding, prefill), tuple(parts))

    def finish(self, step: Step) -> list[Job]:
        """Those that have said one more token by it; who has said all is gone."""
        said = []
        for job, count in step.parts:
            if job not in self.running:
                continue  # dropped in the middle
            job.computed += count
            self._name_blocks(job)
            if job.computed == job.tokens:
                job.said += 1
                said.append(job)
                if job.said == job.output_tokens:
                    self.running.remove(job)
                    self._let_go(job)
        return said

    # What a step is made of.

    def _decoding(self) -> list[tuple[Job, int]]:
        """In the order in which they were taken; who is at the end may lose its place to one before it."""
        ready = [job for job in list(self.running) if job in self.running and job.is_decoding and self._has_room(job)]
        return [(job, 1) for job in ready if job in self.running]

    def _prefill(self, parts: list[tuple[Job, int]], budget: int, now_ns: int) -> None:
        for job in self.running:
            if budget <= 0:
                return
            if not job.is_decoding and self._may_chunk(job, budget, parts):
                count = min(budget, job.tokens - job.computed)
                parts.append((job, count))
                budget -= count
        while budget > 0 and self.waiting and len(self.running) < self.parameters.max_sequences:
            job = self.waiting[0]
            if not self._admitted(job, budget, parts, now_ns):
                return
            count = job.tokens - job.computed
            count = min(budget, count) if self.parameters.chunked_prefill else count
            parts.append((job, count))
            budget -= count

    def _may_chunk(self, job: Job, budget: int, parts: list[tuple[Job, int]]) -> bool:
        whole = job.tokens - job.computed <= budget or not parts
        return whole or self.parameters.chunked_prefill

    def _admitted(self, job: Job, budget: int, parts: list[tuple[Job, int]], now_ns: int) -> bool:
        """Whether the first that waits is taken: all of its prompt has room, and a token of the answer."""
        found = self._found(job)
        kept = job.hashes[:found]
        needed = self._blocks_of(job.tokens) - found
        if needed > self.blocks.available - self.blocks.resting(kept):
            return False
        computed = max(found * self.parameters.block_tokens, self._fetched(job))
        if not self.parameters.chunked_prefill and parts and job.tokens - computed > budget:
            return False
        self.waiting.popleft()
        self.blocks.hold(kept)
        self.blocks.take(needed)
        job.named, job.nameless, job.computed = list(kept), needed, computed
        self._count(job, found)
        job.begun_ns = now_ns if job.begun_ns is None else job.begun_ns
        self.running.append(job)
        return True

    def _found(self, job: Job) -> int:
        """Blocks; at least one token is left to compute, for without it nothing is said."""
        if not self.parameters.prefix_caching:
            return 0
        most = (job.tokens - 1) // self.parameters.block_tokens
        return self.blocks.found(list(islice(job.hashes, most)))

    def _fetched(self, job: Job) -> int:
        return job.prompt_tokens - 1 if job.fetched else 0

    def _count(self, job: Job, found: int) -> None:
        if job.cached_tokens is None:
            job.cached_tokens = found * self.parameters.block_tokens
            self.prefix_queries += job.prompt_tokens if self.parameters.prefix_caching else 0
            self.prefix_hits += job.cached_tokens

    # Room.

    def _blocks_of(self, tokens: int) -> int:
        return -(-tokens // self.parameters.block_tokens)

    def _has_room(self, job: Job) -> bool:
        """A block for the token that was said last; whoever was taken last gives its own, perhaps the job itself."""
        needed = self._blocks_of(job.tokens) - len(job.named) - job.nameless
        while needed > self.blocks.available:
            last = self.running[-1]
            self._preempt(last)
            if last is job:
                return False
        if needed > 0:
            self.blocks.take(needed)
            job.nameless += needed
        return True

    def _preempt(self, job: Job) -> None:
        self.running.remove(job)
        self._let_go(job)
        self.waiting.appendleft(job)
        self.preemptions += 1

    def _let_go(self, job: Job) -> None:
        self.blocks.give_back(job.named, job.nameless)
        job.named, job.nameless, job.computed = [], 0, 0

    def _name_blocks(self, job: Job) -> None:
        if not self.parameters.prefix_caching:
            return
        full: Sequence[Hashable] = job.hashes[: job.computed // self.parameters.block_tokens]
        for each in full[len(job.named) :]:
            if not self.blocks.name(each):
                return  # another was quicker; what comes behind it stays nameless too, so that the order holds
            job.named.append(each)
            job.nameless -= 1
