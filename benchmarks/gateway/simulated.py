"""Engines and conversations in virtual time: a prefix cache, a batch, a queue. What policies are compared on.

An engine serves up to ``BATCH`` requests at once and lets the others wait. A request costs its engine the tokens of
its prompt that are not in the cache, one prefill after another, and then its answer, which goes slower the more are
decoded at once. The cache holds the latest conversations up to a number of tokens.
"""

import heapq
import random
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from withstand.gateway.asked import Asked, Raw
from withstand.gateway.config import config_of
from withstand.gateway.engine import Seat
from withstand.gateway.roster import Roster

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
            self.cache[key] = tokens
            self.cache.move_to_end(key)
        while sum(self.cache.values()) > CACHE_TOKENS:
            self.cache.popitem(last=False)
        work.cached_tokens = hit
        self.prefill_free_s = max(now_s, self.prefill_free_s) + (work.tokens - hit) / PREFILL_TOKENS_S
        work.began_s = self.prefill_free_s
        return work.began_s + work.answer_tokens * DECODE_S * (1 + self.running / BATCH / 2)


@dataclass
class Outcome:
    """What came of all requests."""

    ttft_s: list[float]
    hit_share: float
    shares: list[float]
    """Of the work (tokens not found in a cache, and answers), an engine each."""
    most: list[int]
    """Requests that an engine had at once."""


def simulate(policy: str, engines: int, users: int, conversations: int, seed: int, **model: object) -> Outcome:
    """So many users, each with a conversation after another; who has an answer thinks, and asks again."""
    dice = random.Random(seed)
    told = [{"url": f"http://engine-{i}:80"} for i in range(engines)]
    config = config_of({"models": {"m": {"engines": told, "policy": policy, **model}}})
    chosen_by = Roster(config, random.Random(seed + 1)).models["m"]
    machines = {seat: Engine(seat) for seat in chosen_by.seats}
    events: list[tuple[float, int, str, Work, Seat | None]] = []
    numbers = iter(range(10**9))
    left = iter(range(conversations))

    def push(at_s: float, kind: str, work: Work, seat: Seat | None) -> None:
        heapq.heappush(events, (at_s, next(numbers), kind, work, seat))

    def new(at_s: float) -> None:
        number = next(left, None)
        if number is not None:
            turns = [1500, round(dice.lognormvariate(5, 0.8)) + 1]
            push(at_s, "ask", Work(dice.randrange(4), number, turns, _answer(dice)), None)

    for _ in range(users):
        new(dice.random() * 20)
    ttft_s: list[float] = []
    hit = tokens = 0
    work_of = dict.fromkeys(chosen_by.seats, 0)
    while events:
        now_s, _, kind, work, seat = heapq.heappop(events)
        if kind == "ask":
            asked = Asked(model="m", prompt=Raw(b'"%b"' % work.prompt), user=Raw(b'"%d"' % work.conversation))
            seat = chosen_by.choose(chosen_by.policy.chooser(asked, {}.get), now_s, ())
            assert seat is not None
            machine = machines[seat]
            seat.engine.sends(now_s)
            machine.most = max(machine.most, seat.engine.in_flight)
            work.at_s = now_s
            machine.waiting.append(work)
        else:
            assert seat is not None
            machine = machines[seat]
            machine.running -= 1
            seat.engine.in_flight -= 1
            seat.engine.answered(200, now_s)
            if dice.random() < 1 / 6:
                new(now_s + dice.expovariate(1 / 5))
            else:
                turns = [*work.turns, work.answer_tokens + round(dice.lognormvariate(4, 0.8)) + 1]
                push(now_s + dice.expovariate(1 / 5), "ask", Work(work.system, work.conversation, turns, _answer(dice)), None)
        while machine.waiting and machine.running < BATCH:
            begun = machine.waiting.popleft()
            push(machine.begin(begun, now_s), "end", begun, seat)
            ttft_s.append(begun.began_s - begun.at_s)
            hit += begun.cached_tokens
            tokens += begun.tokens
            work_of[seat] += begun.tokens - begun.cached_tokens + begun.answer_tokens
    total = sum(work_of.values())
    return Outcome(ttft_s, hit / tokens, [w / total for w in work_of.values()], [m.most for m in machines.values()])


def _answer(dice: random.Random) -> int:
    return round(dice.lognormvariate(5, 0.6)) + 1
