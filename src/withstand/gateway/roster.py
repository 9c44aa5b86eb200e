"""Which models there are, by all their names, and which engines serve them. It changes while requests are under way."""

import math
import os
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from withstand.errors import UsageError
from withstand.gateway.address import Origin
from withstand.gateway.config import WEIGHT_MIN, Config, EngineConfig, ModelConfig, check_role
from withstand.gateway.engine import BOOTSTRAP_PORT, Engine, Seat
from withstand.gateway.policies import Choose, policy_of
from withstand.gateway.waiting import Lobby, WaitingRoom
from withstand.gateway.workers.board import Board


class Model:
    """A model's seats, and the policy that chooses among them."""

    def __init__(self, name: str, config: ModelConfig, dice: random.Random, room: WaitingRoom) -> None:
        self.name = name
        self.room = room
        """Where requests wait while nobody can be asked."""
        self.max_in_flight = config.max_in_flight
        self.aliases = config.aliases
        self.config = config
        self.policy = policy_of(config, dice)
        self.disaggregation = config.disaggregation
        self.seats: list[Seat] = []
        """Of a disaggregated model those that decode: they answer the client."""
        self.prefill = None if config.disaggregation is None else Model(name, _without(config), dice, room)
        """The others."""

    def pool(self, told: EngineConfig) -> "Model":
        """Among whose seats an engine's is.

        Raises:
            SpecError: it has no place in this model.
        """
        check_role(self.config, told, f"models.{self.name}")
        return self.prefill if told.role == "prefill" and self.prefill is not None else self

    def places(self) -> list[Seat]:
        """All seats."""
        return self.seats if self.prefill is None else [*self.prefill.seats, *self.seats]

    def ready(self, now_s: float) -> bool:
        """Whether a request may be sent."""
        told = self.disaggregation
        prefills = self.prefill is None or told is None or told.fallback or self.prefill.ready(now_s)
        return prefills and bool(self.healthy(now_s))

    def healthy(self, now_s: float, tried: Sequence[Seat] = ()) -> list[Seat]:
        """Those that may be asked and have not been."""
        return [s for s in self.seats if s.weight >= WEIGHT_MIN and s.engine.may_be_asked(now_s) and s not in tried]

    def free(self, now_s: float, tried: Sequence[Seat]) -> bool:
        """Whether another could do it at once."""
        return any(seat.has_room for seat in self.healthy(now_s, tried))

    def untried(self, now_s: float, tried: Sequence[Seat]) -> list[Seat]:
        """The healthy ones, or failing ones where there is no other."""
        return self.healthy(now_s, tried) or [
            s
            for s in self.seats
            if s.weight >= WEIGHT_MIN and not (s.engine.draining or s.engine.coming) and s not in tried
        ]

    def has_room(self, now_s: float, tried: Sequence[Seat]) -> bool:
        """Whether ``choose`` would find somebody; it is nobody's turn by that."""
        full = self.prefill is not None and self.prefill.full(now_s)
        return not full and any(seat.has_room for seat in self.untried(now_s, tried))

    def choose(self, now_s: float, tried: Sequence[Seat], choose: Choose) -> Seat | None:
        """Who is asked next; ``choose`` is what the policy has made of the request.

        Nobody who has enough to do, and nobody whom no engine could prefill for just now.
        """
        if self.prefill is not None and self.prefill.full(now_s):
            return None
        seats = [seat for seat in self.untried(now_s, tried) if seat.has_room]
        return choose(seats, now_s) if seats else None

    def full(self, now_s: float) -> bool:
        """There are engines, and all have enough to do."""
        return bool(self.untried(now_s, ())) and not self.has_room(now_s, ())

    def hope(self, now_s: float, tried: Sequence[Seat]) -> bool:
        """Whether somebody may be asked later, where nobody can be now: who is full, or is being started."""
        return bool(self.untried(now_s, tried)) or any(
            s.engine.coming and s.weight >= WEIGHT_MIN and s not in tried for s in self.seats
        )


class Roster:
    """All models and engines."""

    def __init__(self, config: Config, dice: random.Random, lobby: Lobby, board: Board | None = None) -> None:
        self.lobby = lobby
        self._board = board or Board()
        self.models: dict[str, Model] = {}
        self.engines: dict[Origin, Engine] = {}
        self._by_name: dict[str, Model] = {}
        for name, told in config.models.items():
            model = self.models[name] = Model(name, told, dice, lobby.room(told.queue.requests, told.queue.wait_s))
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
        pool = model.pool(told)
        if any(seat.engine.origin == origin for seat in model.places()):
            raise UsageError(f"{told.url} serves {model.name!r} already; change its weight instead.")
        engine = self.engines.get(origin)
        if engine is None:
            engine = self.engines[origin] = Engine(origin, self._board.row(f"engine {origin.name}"), since_s)
        engine.poll = engine.poll or model.config.poll_of(told)
        engine.credentials = engine.credentials or credentials
        seat = Seat(engine, told.weight, told.model or model.name, warm_up_s=model.config.warm_up_s)
        seat.credentials = credentials
        seat.max_in_flight = told.max_in_flight or model.max_in_flight
        seat.role = told.role
        seat.bootstrap_port = told.bootstrap_port or BOOTSTRAP_PORT
        pool.seats.append(seat)
        self.lobby.stir()
        return seat

    def unseat(self, model: Model, seat: Seat) -> None:
        """One engine less for a model; what it has under way goes on."""
        pool = model if seat in model.seats or model.prefill is None else model.prefill
        pool.seats.remove(seat)
        engine = seat.engine
        if not any(other.engine is engine for m in self.models.values() for other in m.places()):
            del self.engines[engine.origin]
            engine.draining = True
            engine.close_idle(float("inf"))


def _without(config: ModelConfig) -> ModelConfig:
    return msgspec.structs.replace(config, disaggregation=None)


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
