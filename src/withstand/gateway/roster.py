"""Which models there are, by all their names, and which engines serve them. It changes while requests are under way."""

import math
import os
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from withstand.errors import UsageError
from withstand.gateway.address import Origin
from withstand.gateway.config import WEIGHT_MIN, Config, EngineConfig, ModelConfig
from withstand.gateway.engine import Engine, Seat
from withstand.gateway.policies import Choose, policy_of


class Model:
    """A model's seats, and the policy that chooses among them."""

    def __init__(self, name: str, config: ModelConfig, dice: random.Random) -> None:
        self.name = name
        self.aliases = config.aliases
        self.config = config
        self.policy = policy_of(config, dice)
        self.seats: list[Seat] = []

    def healthy(self, now_s: float, tried: Sequence[Seat] = ()) -> list[Seat]:
        """Those that may be asked and have not been."""
        return [s for s in self.seats if s.weight >= WEIGHT_MIN and s.engine.may_be_asked(now_s) and s not in tried]

    def untried(self, now_s: float, tried: Sequence[Seat]) -> list[Seat]:
        """The healthy ones, or failing ones where there is no other."""
        return self.healthy(now_s, tried) or [
            s for s in self.seats if s.weight >= WEIGHT_MIN and not s.engine.draining and s not in tried
        ]

    def choose(self, now_s: float, tried: Sequence[Seat], choose: Choose) -> Seat | None:
        """Who is asked next; ``choose`` is what the policy has made of the request."""
        seats = self.untried(now_s, tried)
        return choose(seats, now_s) if seats else None


class Roster:
    """All models and engines."""

    def __init__(self, config: Config, dice: random.Random) -> None:
        self.models: dict[str, Model] = {}
        self.engines: dict[Origin, Engine] = {}
        self._by_name: dict[str, Model] = {}
        for name, told in config.models.items():
            model = self.models[name] = Model(name, told, dice)
            self._by_name.update(dict.fromkeys((name, *told.aliases), model))
            for engine in told.engines:
                self.seat(model, engine)

    def model(self, name: str) -> Model | None:
        """By its name or by an alias."""
        return self._by_name.get(name)

    def names(self) -> Iterable[tuple[str, Model]]:
        """Every name that a client may give."""
        return self._by_name.items()

    def seat(self, model: Model, told: EngineConfig, since_s: float = -math.inf) -> Seat:
        """One more engine for a model; ``since_s`` is when it joins, where that is not from the beginning.

        Raises:
            UsageError: its key cannot be read, or it has a seat already.
        """
        origin, credentials = told.origin, _credentials(told)
        if any(seat.engine.origin == origin for seat in model.seats):
            raise UsageError(f"{told.url} serves {model.name!r} already; change its weight instead.")
        engine = self.engines.get(origin)
        if engine is None:
            engine = self.engines[origin] = Engine(origin, since_s)
        engine.poll = engine.poll or model.config.poll_of(told)
        engine.credentials = engine.credentials or credentials
        seat = Seat(engine, told.weight, told.model or model.name, warm_up_s=model.config.warm_up_s)
        seat.credentials = credentials
        model.seats.append(seat)
        return seat

    def unseat(self, model: Model, seat: Seat) -> None:
        """One engine less for a model; what it has under way goes on."""
        model.seats.remove(seat)
        engine = seat.engine
        if not any(other.engine is engine for m in self.models.values() for other in m.seats):
            del self.engines[engine.origin]
            engine.draining = True
            engine.close_idle(float("inf"))


def _credentials(told: EngineConfig) -> bytes | None:
    if told.api_key_env is not None:
        return _clean(os.environ.get(told.api_key_env), f"The environment variable {told.api_key_env}")
    if told.api_key_file is not None:
        try:
            text = Path(told.api_key_file).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            text = None
        return _clean(text, f"The file {told.api_key_file}")
    return None


def _clean(text: str | None, where: str) -> bytes:
    key = (text or "").strip()
    if not key or not (key.isascii() and key.isprintable()):
        raise UsageError(f"{where} holds no API key for an engine; put one there.")
    return key.encode("ascii")
