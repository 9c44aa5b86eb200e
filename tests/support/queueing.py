"""Engines and clients in virtual time: who waits for what, without a clock."""

import heapq
from collections import Counter
from collections.abc import Callable
from typing import Any

from withstand.gateway.address import origin_of
from withstand.gateway.config import ModelConfig, config_of
from withstand.gateway.engine import Engine, Seat
from withstand.gateway.roster import Roster
from withstand.gateway.waiting import Lobby


def seat(number: int, weight: float = 1.0, in_flight: int = 0, **more: Any) -> Seat:
    engine = Engine(origin_of(f"http://engine-{number}:80"))
    for _ in range(in_flight):
        engine.sends(0.0)
    return Seat(engine, weight, "m", **more)


def model_config(**fields: Any) -> ModelConfig:
    return config_of({"models": {"m": fields}}).models["m"]


def roster(dice: Any, weights: list[float], **fields: Any) -> Roster:
    engines = [{"url": f"http://engine-{i}:80", "weight": weight} for i, weight in enumerate(weights)]
    return Roster(config_of({"models": {"m": {"engines": engines, **fields}}}), dice, Lobby(lambda _: None))


Serve = Callable[[Seat, float], tuple[float, int]]
"""A seat and the time → how long the answer takes, and its status."""


def closed_loop(
    choose: Callable[[float], Seat], serve: Serve, clients: int, total: int, begin_s: float = 0.0
) -> Counter[Seat]:
    """So many clients, each of which sends when it has its answer; requests of each seat."""
    served: Counter[Seat] = Counter()
    ends = [(begin_s, n, None, 200) for n in range(clients)]
    heap: list[tuple[float, int, Seat | None, int]] = list(ends)
    number = clients
    while heap:
        now_s, _, done, status = heapq.heappop(heap)
        if done is not None:
            done.engine.rests()
            done.engine.answered(status, now_s)
        if served.total() < total:
            chosen = choose(now_s)
            chosen.engine.sends(now_s)
            served[chosen] += 1
            takes_s, status = serve(chosen, now_s)
            number += 1
            heapq.heappush(heap, (now_s + takes_s, number, chosen, status))
    return served
