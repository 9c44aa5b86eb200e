"""Engines and conversations in virtual time: a prefix cache, a batch, a queue. What policies are compared on.

An engine serves up to ``BATCH`` requests at once and lets the others wait. A request costs its engine the tokens of
its prompt that are not in the cache, one prefill after another, and then its answer, which goes slower the more are
decoded at once. The cache holds the latest conversations up to a number of tokens.
"""

import heapq
import random
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from itertools import count

from withstand.gateway.asked import Asked, Raw
from withstand.gateway.config import config_of
from withstand.gateway.engine import Seat
from withstand.gateway.roster import Roster
from withstand.gateway.waiting import Lobby

BATCH = 32
PREFILL_TOKENS_S = 8_000
CACHE_TOKENS = 150_000
DECODE_S = 0.02
"""A token of one answer; half as much again in a full batch."""
BYTES_A_TOKEN = 4


@dataclass
class Work:
    """The user and assistant turns so far; ``system`` is shared by many conversations."""

    system: int
    conversation: int
    turns: list[int]
    answer_tokens: int
    at_s: float = 0.0
    began_s: float = 0.0
    cached_tokens: int = 0

    @property
    def prompt(self) -> bytes:
        """Bytes that begin like those of the turn before."""
        parts = [_text(f"system {self.system}", self.turns[0])]
        parts += [_text(f"{self.conversation}/{i}", tokens) for i, tokens in enumerate(self.turns[1:])]
        return b"".join(parts)

    @property
    def tokens(self) -> int:
        """Of the whole prompt."""
        return sum(self.turns)


def _text(name: str, tokens: int) -> bytes:
    size = tokens * BYTES_A_TOKEN
    return (f"{name} ".encode() * (size // len(name) + 1))[:size]


@dataclass
class Engine:
    """``cache``: (what, turn) → tokens, the latest last."""

    seat: Seat
    running: int = 0
    prefill_free_s: float = 0.0
    waiting: deque[Work] = field(default_factory=deque)
    cache: OrderedDict[tuple[str, int, int], int] = field(default_factory=OrderedDict)
    cached_tokens: int = 0
    most: int = 0

    def begin(self, work: Work, now_s: float) -> float:
        """When it ends."""
        self.running += 1
        keys = [("system", work.system, 0), *(("turn", work.conversation, i) for i in range(1, len(work.turns)))]
        hit = 0
        for key, tokens in zip(keys, work.turns, strict=True):
            if key not in self.cache:
                break
            hit += tokens
        for key, tokens in reversed(list(zip(keys, work.turns, strict=True))):
            self.cached_tokens += 0 if key in self.cache else tokens
            self.cache[key] = tokens
            self.cache.move_to_end(key)
        while self.cached_tokens > CACHE_TOKENS:
            self.cached_tokens -= self.cache.popitem(last=False)[1]
        work.cached_tokens = hit
        self.prefill_free_s = max(now_s, self.prefill_free_s) + (work.tokens - hit) / PREFILL_TOKENS_S
        work.began_s = self.prefill_free_s
        return work.began_s + work.answer_tokens * DECODE_S * (1 + self.running / BATCH / 2)


@dataclass(frozen=True)
class Load:
    """So many users at once, each with one conversation after another."""

    users: int
    conversations: int
    systems: int = 4
    system_tokens: int = 1500
    goes_on: float = 5 / 6
    """How likely another turn is."""
    thinks_s: float = 5.0


CHATS = Load(150, 600)
HOT = Load(150, 2000, systems=1, system_tokens=6000, goes_on=0.0, thinks_s=1.0)
"""Nothing but questions behind one long beginning: all of them have their best match on whichever was asked first."""


@dataclass
class Outcome:
    """What came of all requests."""

    ttft_s: list[float] = field(default_factory=list)
    hit_tokens: int = 0
    tokens: int = 0
    work: list[int] = field(default_factory=list)
    """Tokens that were not in a cache, and answers, an engine each."""
    most: list[int] = field(default_factory=list)
    """Requests that an engine had at once."""


class Simulation:
    """``model``: the policy and what belongs to it, as the gateway's file has it."""

    def __init__(self, load: Load, engines: int, seed: int, model: dict[str, object]) -> None:
        self._load = load
        self._dice = random.Random(seed)
        told = [{"url": f"http://engine-{i}:80"} for i in range(engines)]
        config = config_of({"models": {"m": {"engines": told, **model}}})
        self._model = Roster(config, random.Random(seed + 1), Lobby(lambda _: None)).models["m"]
        self._machines = {seat: Engine(seat) for seat in self._model.seats}
        self._work = dict.fromkeys(self._model.seats, 0)
        self._events: list[tuple[float, int, Work, Seat | None]] = []
        self._numbers = count()
        self._left = iter(range(load.conversations))
        self._outcome = Outcome()

    def run(self) -> Outcome:
        """To the end of the last conversation."""
        for _ in range(self._load.users):
            self._open(self._dice.random() * 20)
        while self._events:
            now_s, _, work, seat = heapq.heappop(self._events)
            if seat is None:
                seat = self._ask(work, now_s)
            else:
                self._answered(work, seat, now_s)
            self._begin(seat, now_s)
        self._outcome.work = list(self._work.values())
        self._outcome.most = [machine.most for machine in self._machines.values()]
        return self._outcome

    def _push(self, at_s: float, work: Work, seat: Seat | None) -> None:
        heapq.heappush(self._events, (at_s, next(self._numbers), work, seat))

    def _open(self, at_s: float) -> None:
        number = next(self._left, None)
        if number is not None:
            turns = [self._load.system_tokens, self._length(5)]
            self._push(at_s, Work(self._dice.randrange(self._load.systems), number, turns, self._length(5)), None)

    def _ask(self, work: Work, now_s: float) -> Seat:
        asked = Asked(model="m", prompt=Raw(b'"%b"' % work.prompt), user=Raw(b'"%d"' % work.conversation))
        choose = self._model.policy.chooser(asked, lambda _: None)
        seat = self._model.choose(now_s, (), choose)
        assert seat is not None
        seat.engine.sends(now_s)
        machine = self._machines[seat]
        machine.most = max(machine.most, seat.engine.in_flight)
        machine.waiting.append(work)
        work.at_s = now_s
        return seat

    def _answered(self, work: Work, seat: Seat, now_s: float) -> None:
        self._machines[seat].running -= 1
        seat.engine.rests()
        seat.engine.answered(200, now_s)
        later_s = now_s + self._dice.expovariate(1 / self._load.thinks_s)
        if self._dice.random() < self._load.goes_on:
            turns = [*work.turns, work.answer_tokens + self._length(4)]
            self._push(later_s, Work(work.system, work.conversation, turns, self._length(5)), None)
        else:
            self._open(later_s)

    def _begin(self, seat: Seat, now_s: float) -> None:
        machine, outcome = self._machines[seat], self._outcome
        while machine.waiting and machine.running < BATCH:
            work = machine.waiting.popleft()
            self._push(machine.begin(work, now_s), work, seat)
            outcome.ttft_s.append(work.began_s - work.at_s)
            outcome.hit_tokens += work.cached_tokens
            outcome.tokens += work.tokens
            self._work[seat] += work.tokens - work.cached_tokens + work.answer_tokens

    def _length(self, log_mean: float) -> int:
        return round(self._dice.lognormvariate(log_mean, 0.7)) + 1
