"""Which models there are, by all their names, and which engines serve them. It changes while requests are under way."""

import math
import os
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from withstand.errors import UsageError
from withstand.gateway import refusals
from withstand.gateway.address import Origin
from withstand.gateway.config import WEIGHT_MIN, Config, EngineConfig, ModelConfig
from withstand.gateway.engine import Engine, Seat
from withstand.gateway.hosting.config import Hosted
from withstand.gateway.policies import Choose, policy_of
from withstand.gateway.refusals import Refusal
from withstand.gateway.waiting import Lobby, WaitingRoom


class Model:
    """A model's seats, and the policy that chooses among them."""

    def __init__(self, name: str, room: WaitingRoom, dice: random.Random) -> None:
        self.name = name
        self.room = room
        """Where requests wait while nobody can be asked."""
        self.config = ModelConfig()
        self.policy = policy_of(self.config, dice)
        self.seats: list[Seat] = []

    @property
    def aliases(self) -> tuple[str, ...]:
        """Its other names."""
        return self.config.aliases

    def adopt(self, config: ModelConfig, dice: random.Random) -> None:
        """Be as it says; a policy that stays keeps what it knows, and so do the seats."""
        then, self.config = self.config, config
        self.room.size, self.room.wait_s = config.line.requests, config.line.wait_s
        if _choosing(then) != _choosing(config):
            self.policy = policy_of(config, dice)

    def seat_at(self, origin: Origin) -> Seat | None:
        """The engine's there, if it has one."""
        return next((seat for seat in self.seats if seat.engine.origin == origin), None)

    def healthy(self, now_s: float, tried: Sequence[Seat] = ()) -> list[Seat]:
        """Those that may be asked and have not been."""
        return [s for s in self.seats if s.weight >= WEIGHT_MIN and s.engine.may_be_asked(now_s) and s not in tried]

    def free(self, now_s: float, tried: Sequence[Seat]) -> bool:
        """Whether another could do it at once."""
        return any(seat.has_room for seat in self.healthy(now_s, tried))

    def untried(self, now_s: float, tried: Sequence[Seat]) -> list[Seat]:
        """The healthy ones, or failing ones where there is no other."""
        return self.healthy(now_s, tried) or [
            s for s in self.seats if s.weight >= WEIGHT_MIN and s.engine.is_there and s not in tried
        ]

    def has_room(self, now_s: float, tried: Sequence[Seat]) -> bool:
        """Whether ``choose`` would find somebody; it is nobody's turn by that."""
        return any(seat.has_room for seat in self.untried(now_s, tried))

    def choose(self, now_s: float, tried: Sequence[Seat], choose: Choose) -> Seat | None:
        """Who is asked next, but nobody who has enough to do; ``choose`` is what the policy has made of the request."""
        seats = [seat for seat in self.untried(now_s, tried) if seat.has_room]
        return choose(seats, now_s) if seats else None

    def hope(self, now_s: float, tried: Sequence[Seat]) -> bool:
        """Whether somebody may be asked later, where nobody can be now: who is full, or is being started."""
        return bool(self.untried(now_s, tried)) or bool(self.coming(now_s, tried))

    def coming(self, now_s: float, tried: Sequence[Seat] = ()) -> list[Seat]:
        """Those that are being started, or would be."""
        return [s for s in self.seats if s.weight >= WEIGHT_MIN and s.engine.is_coming(now_s) and s not in tried]

    def serves(self, now_s: float) -> bool:
        """Whether a request is worth sending: somebody is well, or would be started."""
        return bool(self.healthy(now_s) or self.coming(now_s))

    def nobody(self, now_s: float, retry_after_s: int) -> Refusal:
        """Why there is not even hope."""
        failed = [s.engine.process for s in self.seats if s.engine.process and s.engine.process.failure]
        if not failed:
            return refusals.no_engine(self.name, retry_after_s)
        soonest = min(failed, key=lambda process: process.backoff.left_s(now_s))
        left_s = max(1, math.ceil(soonest.backoff.left_s(now_s)))
        return refusals.not_started(self.name, soonest.failure or "", left_s)


def _choosing(config: ModelConfig) -> tuple[object, ...]:
    """What a policy is made of."""
    return config.policy, config.load_bound, config.session_by


class Roster:
    """All models and engines."""

    def __init__(self, config: Config, dice: random.Random, lobby: Lobby) -> None:
        self.lobby = lobby
        self.models: dict[str, Model] = {}
        self.engines: dict[Origin, Engine] = {}
        """Those too that have no seat any more, until they have ended what they have begun."""
        self._dice = dice
        self._by_name: dict[str, Model] = {}
        self.adopt(config)

    def adopt(self, config: Config, since_s: float = -math.inf) -> None:
        """Be as the configuration says. What stays, stays with all that it has under way; what goes, ends it first.

        ``since_s`` is when those join that are new, where that is not from the beginning.

        Raises:
            UsageError: an engine's key cannot be read; nothing has changed then.
        """
        keys = {(name, told.url): _credentials(told) for name, m in config.models.items() for told in m.engines}
        for gone in [name for name in self.models if name not in config.models]:
            self._seat_only(self.models.pop(gone), ())
        self._by_name = {}
        for there in self.engines.values():
            there.poll = there.credentials = None
        for name, told in config.models.items():
            model = self.models.get(name) or Model(name, self.lobby.room(0, 0.0), self._dice)
            self.models[name] = model
            self._by_name.update(dict.fromkeys((name, *told.aliases), model))
            model.adopt(told, self._dice)
            self._seat_only(model, told.engines)
            for engine in told.engines:
                self._seat(model, engine, keys[name, engine.url], since_s)
            order = [engine.origin for engine in told.engines]
            model.seats.sort(key=lambda seat: order.index(seat.engine.origin))
        hosted = {e.origin: e for m in config.models.values() for e in m.engines if e.command is not None}
        for origin, there in self.engines.items():
            there.be_hosted(hosted.get(origin, Hosted()))
        self.lobby.stir()

    def _seat_only(self, model: Model, told: Iterable[EngineConfig]) -> None:
        origins = {engine.origin for engine in told}
        for seat in tuple(model.seats):
            if seat.engine.origin not in origins:
                self.unseat(model, seat)

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
        if model.seat_at(told.origin) is not None:
            raise UsageError(f"{told.url} serves {model.name!r} already; change its weight instead.")
        seat = self._seat(model, told, _credentials(told), since_s)
        self.lobby.stir()
        return seat

    def _seat(self, model: Model, told: EngineConfig, credentials: bytes | None, since_s: float) -> Seat:
        """A new one, or the one that is there, as told."""
        seat = model.seat_at(told.origin)
        if seat is None:
            engine = self.engines.setdefault(told.origin, Engine(told.origin, since_s))
            if engine.removed:
                engine.removed, engine.draining, engine.since_s = False, False, since_s
            seat = Seat(engine, told.weight, model.name)
            model.seats.append(seat)
        engine = seat.engine
        engine.poll = engine.poll or model.config.poll_of(told)
        engine.credentials = engine.credentials or credentials
        seat.weight, seat.served, seat.credentials = told.weight, told.model or model.name, credentials
        seat.warm_up_s = model.config.warm_up_s
        seat.max_in_flight = told.max_in_flight or model.config.max_in_flight
        return seat

    def unseat(self, model: Model, seat: Seat) -> None:
        """One engine less for a model; what it has under way goes on."""
        model.seats.remove(seat)
        engine = seat.engine
        if not any(other.engine is engine for m in self.models.values() for other in m.seats):
            engine.removed = True
            engine.close_idle(float("inf"))
        self.sweep()
        self.lobby.stir()

    def sweep(self) -> None:
        """Forget engines that were removed and have ended what they had begun."""
        for origin, engine in tuple(self.engines.items()):
            if engine.removed and not engine.in_flight and not (engine.process and engine.process.has_memory):
                del self.engines[origin]


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
