"""Which models there are, by all their names, and which engines serve them. It changes while requests are under way."""

import math
import random
from collections.abc import Iterable, Sequence

import msgspec

from withstand.errors import UsageError
from withstand.gateway import refusals
from withstand.gateway.address import Origin
from withstand.gateway.config import WEIGHT_MIN, Config, Disaggregation, EngineConfig, ModelConfig
from withstand.gateway.config_checks import check_role
from withstand.gateway.credentials import credentials_of
from withstand.gateway.engine import BOOTSTRAP_PORT, Engine, Seat
from withstand.gateway.hosting.config import Hosted
from withstand.gateway.policies import Choose, policy_of
from withstand.gateway.refusals import Refusal
from withstand.gateway.waiting import Lobby, WaitingRoom
from withstand.gateway.workers.board import Board


class Model:
    """A model's seats, and the policy that chooses among them."""

    def __init__(self, name: str, room: WaitingRoom, dice: random.Random) -> None:
        self.name = name
        self.room = room
        """Where requests wait while nobody can be asked."""
        self.config = ModelConfig()
        self.policy = policy_of(self.config, dice)
        self.seats: list[Seat] = []
        """Of a disaggregated model those that decode: they answer the client."""
        self.prefill: Model | None = None
        """The others."""
        self._dice = dice

    @property
    def aliases(self) -> tuple[str, ...]:
        """Its other names."""
        return self.config.aliases

    @property
    def disaggregation(self) -> Disaggregation | None:
        """How its two parts come together; None = it has no parts."""
        return self.config.disaggregation

    def adopt(self, config: ModelConfig) -> None:
        """Be as it says, with no seats as yet; a policy that stays keeps what it knows."""
        then, self.config = self.config, config
        self.room.size, self.room.wait_s = config.line.requests, config.line.wait_s
        if _choosing(then) != _choosing(config):
            self.policy = policy_of(config, self._dice)
        self.seats = []
        if self.prefill is not None:
            self.prefill.seats = []  # also for requests that know it still, where it is no more
        if config.disaggregation is None:
            self.prefill = None
        else:
            self.prefill = self.prefill or Model(self.name, self.room, self._dice)
            self.prefill.adopt(msgspec.structs.replace(config, disaggregation=None))

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

    def seat_at(self, origin: Origin) -> Seat | None:
        """The engine's there, if it has one."""
        return next((seat for seat in self.places() if seat.engine.origin == origin), None)

    def ready(self, now_s: float) -> bool:
        """Whether a request is worth sending: for each part of it somebody is well, or would be started."""
        prefills = self.prefill is None or self._falls_back or self.prefill.ready(now_s)
        healthy = any(not seat.engine.is_unreachable for seat in self.healthy(now_s))
        return prefills and (healthy or bool(self.coming(now_s)))

    @property
    def _falls_back(self) -> bool:
        return self.disaggregation is not None and self.disaggregation.fallback

    def healthy(self, now_s: float, tried: Sequence[Seat] = ()) -> list[Seat]:
        """Those that may be asked and have not been."""
        return [s for s in self._left(now_s, tried) if s.engine.may_be_asked(now_s)]

    def _left(self, now_s: float, tried: Sequence[Seat]) -> list[Seat]:
        """Those that have not been asked; backups only where none of the others is well, or may come."""
        left = [s for s in self.seats if s.weight >= WEIGHT_MIN and s not in tried]
        first = [s for s in left if not s.backup]
        if len(first) == len(left) or not any(s.engine.may_be_asked(now_s) or s.engine.is_coming(now_s) for s in first):
            return left
        return first

    def free(self, now_s: float, tried: Sequence[Seat]) -> bool:
        """Whether another could do it at once."""
        return any(seat.has_room for seat in self.healthy(now_s, tried))

    def untried(self, now_s: float, tried: Sequence[Seat]) -> list[Seat]:
        """The healthy ones; where there is none, those that failed requests; else those that fail their checks.

        Checks can be wrong where all fail, as on a machine that is starved: asking costs less than refusing.
        """
        if healthy := self.healthy(now_s, tried):
            return healthy
        there = [s for s in self._left(now_s, tried) if s.engine.is_there]
        return [s for s in there if not s.engine.checkup.is_ill] or there

    def has_room(self, now_s: float, tried: Sequence[Seat]) -> bool:
        """Whether ``choose`` would find somebody; it is nobody's turn by that."""
        return not self._awaits_prefill(now_s) and bool(self._with_room(now_s, tried))

    def choose(self, now_s: float, tried: Sequence[Seat], choose: Choose) -> Seat | None:
        """Who is asked next; ``choose`` is what the policy has made of the request.

        Nobody who has enough to do, and nobody while those that prefill have, or are being started.
        """
        if self.prefill is not None and self._awaits_prefill(now_s):
            return None
        seats = [
            s
            for s in self.seats
            if not s.backup
            and s.weight >= WEIGHT_MIN
            and s.engine.may_be_asked(now_s)
            and (s.max_in_flight is None or s.has_room)
            and s not in tried
        ] or self._with_room(now_s, tried)
        return choose(seats, now_s) if seats else None

    def _with_room(self, now_s: float, tried: Sequence[Seat]) -> list[Seat]:
        return [s for s in self.untried(now_s, tried) if s.max_in_flight is None or s.has_room]

    def _awaits_prefill(self, now_s: float) -> bool:
        pool = self.prefill
        return pool is not None and not pool.has_room(now_s, ()) and pool.hope(now_s, ())

    def hope(self, now_s: float, tried: Sequence[Seat]) -> bool:
        """Whether somebody may be asked later, where nobody can be now: who is full, or is being started."""
        return bool(self.untried(now_s, tried)) or bool(self.coming(now_s, tried))

    def coming(self, now_s: float, tried: Sequence[Seat] = ()) -> list[Seat]:
        """Those that are being started, or would be; none is where there is nobody to prefill for it."""
        if self.prefill is not None and not self._falls_back and not self.prefill.hope(now_s, ()):
            return []
        return [s for s in self._left(now_s, tried) if s.engine.is_coming(now_s)]

    def lacking(self, now_s: float) -> "list[Model]":
        """The parts, or the whole, for which those wait who wait."""
        if self.prefill is None or self.prefill.has_room(now_s, ()):
            return [self]
        return [self.prefill] if self._with_room(now_s, ()) else [self.prefill, self]

    def late(self, now_s: float, retry_after_s: int) -> Refusal:
        """Why somebody has waited for too long: nobody had room, or nobody is ready yet."""
        parts = self.lacking(now_s)
        if any(part.coming(now_s) and not part.healthy(now_s) for part in parts):
            return refusals.not_ready(self.name, retry_after_s)
        return refusals.waited_too_long(self.name, retry_after_s)

    def nobody(self, now_s: float, retry_after_s: int) -> Refusal:
        """Why there is not even hope."""
        failed = [s.engine.process for s in self.places() if s.engine.process and s.engine.process.failure]
        if not failed:
            troubles = [t.why for s in self.places() if (t := s.engine.current_trouble) is not None]
            return refusals.no_engine(self.name, retry_after_s, troubles[0] if troubles else self._why_idle())
        soonest = min(failed, key=lambda process: process.backoff.left_s(now_s))
        left_s = max(1, math.ceil(soonest.backoff.left_s(now_s)))
        return refusals.not_started(self.name, soonest.failure or "", left_s)

    def _why_idle(self) -> str:
        """Why nobody is asked, where nothing is wrong with anybody."""
        if self.prefill is None:
            return _why_idle(self.seats, "")
        return _why_idle(self.seats, " that decode") or _why_idle(self.prefill.seats, " that prefill")


def _why_idle(seats: Sequence[Seat], which: str) -> str:
    """Nothing where one of them would be asked."""
    if not seats:
        return f"it has none{which}"
    weightless = [seat.weight < WEIGHT_MIN for seat in seats]
    draining = [seat.engine.draining for seat in seats]
    if all(draining):
        return f"all{which} are draining"
    if all(weightless):
        return f"all{which} have weight 0"
    either = all(here or there for here, there in zip(draining, weightless, strict=True))
    return f"all{which} are draining or have weight 0" if either else ""


def _choosing(config: ModelConfig) -> tuple[object, ...]:
    """What a policy is made of."""
    return config.policy, config.load_bound, config.session_by


class Roster:
    """All models and engines."""

    def __init__(self, config: Config, dice: random.Random, lobby: Lobby, board: Board | None = None) -> None:
        self.lobby = lobby
        self._board = board or Board()
        self.models: dict[str, Model] = {}
        self.engines: dict[Origin, Engine] = {}
        """Those too that have no seat any more, until they have ended what they have begun."""
        self._dice = dice
        self.by_name: dict[str, Model] = {}
        """Aliases too."""
        self.adopt(config)

    def adopt(self, config: Config, since_s: float = -math.inf) -> None:
        """Be as the configuration says. What stays, stays with all that it has under way; what goes, ends it first.

        ``since_s`` is when those join that are new, where that is not from the beginning.

        Raises:
            UsageError: an engine's key cannot be read; nothing has changed then.
        """
        keys = {
            (name, told.url): credentials_of(told, f"models.{name}.engines[{i}]")
            for name, model_told in config.models.items()
            for i, told in enumerate(model_told.engines)
        }
        then, self.models, self.by_name = self.models, {}, {}
        for there in self.engines.values():
            there.poll = there.health = there.credentials = None
        for name, told in config.models.items():
            model = then[name] if name in then else Model(name, self.lobby.room(0, 0.0), self._dice)
            self.models[name] = model
            self.by_name.update(dict.fromkeys((name, *told.aliases), model))
            seats = {seat.engine.origin: seat for seat in model.places()}
            model.adopt(told)
            for engine in told.engines:
                self._seat(model, engine, seats.get(engine.origin), keys[name, engine.url], since_s)
        for gone in then.keys() - self.models.keys():
            then[gone].adopt(ModelConfig())
        hosted = {e.origin: e for m in config.models.values() for e in m.engines if e.command is not None}
        for origin, there in self.engines.items():
            there.be_hosted(hosted.get(origin, Hosted()))
        self._see_off()
        self.lobby.stir()

    def names(self) -> Iterable[tuple[str, Model]]:
        """Every name that a client may give."""
        return self.by_name.items()

    def seat(self, model: Model, told: EngineConfig, since_s: float = -math.inf) -> Seat:
        """One more engine for a model; ``since_s`` is when it joins, where that is not from the beginning.

        Raises:
            UsageError: its key cannot be read, or it has a seat already.
        """
        credentials = credentials_of(told, f"models.{model.name}")
        if model.seat_at(told.origin) is not None:
            raise UsageError(f"{told.url} serves {model.name!r} already; change its weight instead.")
        seat = self._seat(model, told, None, credentials, since_s)
        self.lobby.stir()
        return seat

    def _seat(
        self, model: Model, told: EngineConfig, seat: Seat | None, credentials: bytes | None, since_s: float
    ) -> Seat:
        """As told: the seat that the engine had in the model, if it had one, or a new one."""
        pool = model.pool(told)
        if seat is None:
            engine = self.engines.get(told.origin)
            if engine is None:
                row = self._board.row(f"engine {told.origin.name}")
                engine = self.engines[told.origin] = Engine(told.origin, since_s, row)
            if engine.removed:
                engine.removed, engine.draining, engine.since_s = False, False, since_s
            seat = Seat(engine, told.weight, model.name)
        engine = seat.engine
        engine.poll = engine.poll or model.config.poll_of(told)
        engine.health = engine.health or model.config.health_of(told)
        engine.credentials = engine.credentials or credentials
        seat.weight, seat.served, seat.credentials = told.weight, told.model or model.name, credentials
        seat.warm_up_s = model.config.warm_up_s
        seat.max_in_flight = told.max_in_flight or model.config.max_in_flight
        seat.role, seat.bootstrap_port = told.role, told.bootstrap_port or BOOTSTRAP_PORT
        seat.backup = told.backup
        pool.seats.append(seat)
        return seat

    def unseat(self, model: Model, seat: Seat) -> None:
        """One engine less for a model; what it has under way goes on."""
        pool = model if seat in model.seats or model.prefill is None else model.prefill
        pool.seats.remove(seat)
        self._see_off()
        self.lobby.stir()

    def _see_off(self) -> None:
        """Who has no seat any more ends what it has begun."""
        seated = {seat.engine for model in self.models.values() for seat in model.places()}
        for engine in self.engines.values():
            if engine not in seated and not engine.removed:
                engine.removed = True
                engine.checkup.forget()
                engine.close_idle(float("inf"))
        self.sweep()

    def sweep(self) -> None:
        """Forget engines that were removed and have ended what they had begun."""
        for origin, engine in tuple(self.engines.items()):
            if engine.removed and not engine.in_flight and not (engine.process and engine.process.has_memory):
                del self.engines[origin]
