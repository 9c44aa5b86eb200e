"""What the gateway's owner is told of engines on stderr: once when one fails, with the reason, and once when it works.

It goes by what is known of an engine, a few times a second; no request is waited for. What was said to fail works again
when nothing is known to be wrong with it any more: not merely when there is less to say.
"""

import math
from collections.abc import Callable, Iterable

from withstand.gateway.engine import Engine

_QUIET_S = 30.0
"""An engine that comes and goes is not told of more often."""


class Bulletin:
    """``say`` gets sentences."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said: dict[Engine, str] = {}
        self._ended_s: dict[Engine, float] = {}

    def look(self, engines: Iterable[Engine], now_s: float) -> None:
        """Say what is new."""
        engines = tuple(engines)
        for engine in engines:
            told = _sentence(engine)
            if engine.removed:
                self._said.pop(engine, None)
            elif told is None:
                if engine in self._said and engine.current_trouble is None:
                    del self._said[engine]
                    self._ended_s[engine] = now_s
                    self._say(f"The engine {engine.name} works again.")
            elif engine not in self._said and now_s - self._ended_s.get(engine, -math.inf) >= _QUIET_S:
                self._said[engine] = told
                self._say(told)
        for gone in (self._said.keys() | self._ended_s.keys()) - set(engines):
            self._said.pop(gone, None)
            self._ended_s.pop(gone, None)


def _sentence(engine: Engine) -> str | None:
    """What is wrong with it; None = nothing that is known."""
    if engine.process is not None and engine.process.failure is not None:
        return engine.process.failure
    if engine.checkup.is_ill and (found := engine.checkup.trouble) is not None:
        return f"The engine {engine.name} fails its health checks: {found.why}."
    trouble = engine.current_trouble
    if trouble is None:
        return None
    if trouble.unreachable:
        return f"The engine {engine.name} cannot be reached: {trouble.why}."
    return f"The engine {engine.name} fails: {trouble.why}." if engine.breaker.is_tripped else None
