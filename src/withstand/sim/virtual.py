"""Requests in, times of tokens out: the whole of a load without a clock."""

import heapq
from collections import deque
from collections.abc import Hashable, Iterable

import msgspec

from withstand.sim.engine import Engine, Job
from withstand.sim.parameters import Parameters


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request, and when it is sent."""

    at_ns: int
    prompt_tokens: int
    output_tokens: int
    hashes: tuple[Hashable, ...] = ()


class Answer(msgspec.Struct, frozen=True):
    """When its tokens were said."""

    asked: Asked
    at_ns: tuple[int, ...]

    @property
    def ttft_ns(self) -> int:
        """From the request."""
        return self.at_ns[0] - self.asked.at_ns

    @property
    def tpot_ns(self) -> float | None:
        """Mean time between its tokens; None = there is one."""
        return (self.at_ns[-1] - self.at_ns[0]) / (len(self.at_ns) - 1) if len(self.at_ns) > 1 else None


def answers(asked: Iterable[Asked], parameters: Parameters, users: int | None = None) -> list[Answer]:
    """Of all, in the order of the requests; who would never fit is left out.

    With ``users`` the loop is closed: after the first so many each is sent when an answer has ended.
    """
    engine = Engine(parameters)
    overhead_ns = round(parameters.overhead_ms * 1e6)
    order = list(asked)
    coming = [(each.at_ns + overhead_ns, number) for number, each in enumerate(order[:users])]
    later = deque(range(len(coming), len(order)))
    heapq.heapify(coming)
    said: dict[int, list[int]] = {}
    now_ns = coming[0][0] if coming else 0

    def next_comes() -> None:
        if later:
            number = later.popleft()
            order[number] = msgspec.structs.replace(order[number], at_ns=now_ns)
            heapq.heappush(coming, (now_ns + overhead_ns, number))

    while coming or engine.running or engine.waiting:
        while coming and coming[0][0] <= now_ns:
            at_ns, number = heapq.heappop(coming)
            job = _job(number, order[number], at_ns)
            if engine.fits(job):
                engine.add(job)
                said[number] = []
            else:
                next_comes()
        step = engine.begin(now_ns)
        if step is None:
            if not coming:
                break
            now_ns = coming[0][0]
            continue
        now_ns = step.ends_ns
        for job in engine.finish(step):
            said[job.number].append(now_ns)
            if len(said[job.number]) == job.output_tokens:
                next_comes()
    return [Answer(order[number], tuple(times)) for number, times in sorted(said.items())]


def _job(number: int, asked: Asked, at_ns: int) -> Job:
    return Job(
        number=number,
        prompt_tokens=asked.prompt_tokens,
        output_tokens=asked.output_tokens,
        hashes=asked.hashes,
        arrived_ns=at_ns,
    )
