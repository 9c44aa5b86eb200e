"""Changes while requests are under way, made by every worker: of engines, or another file."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from withstand.gateway import refusals
from withstand.gateway.address import check_elsewhere, origin_of
from withstand.gateway.config import Config, EngineConfig, Role
from withstand.gateway.control.asking import Refused
from withstand.gateway.engine import Engine, Seat
from withstand.gateway.house import House
from withstand.gateway.roster import Model

Name = Annotated[str, Field(min_length=1)]
"""Its length is looked at, so it must be text: half a surrogate pair is none."""
_Weight = Annotated[float, Field(ge=0, le=1000)]
_AtOnce = Annotated[int, Field(ge=1)]


class Place(BaseModel):
    """An engine among those of a model; a field that there is not is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: Name
    url: Name


class NewEngine(Place):
    """One to add; ``served`` is the model's name there, where it is another. A stack's file says ``served_as``."""

    weight: _Weight = 1.0
    max_in_flight: _AtOnce | None = None
    served: Name | None = Field(None, validation_alias=AliasChoices("served", "served_as"))
    role: Role | None = None
    bootstrap_port: Annotated[int, Field(ge=1, lt=1 << 16)] | None = None
    backup: bool = False


class Change(Place):
    """What is to be other than it was."""

    weight: _Weight | None = None
    max_in_flight: _AtOnce | None = None
    draining: bool | None = None


def fields_of(method: str) -> list[str]:
    """Of the body of a question."""
    kinds: dict[str, type[BaseModel]] = {"POST": NewEngine, "PATCH": Change}
    kind = kinds.get(method)
    return list(kind.model_fields) if kind else []


def made(house: House, kind: str, told: str) -> dict[str, Any]:
    """The seat as it is after the change; ``told`` is the JSON of what ``kind`` needs.

    Raises:
        Refused, UsageError: it cannot be made; nothing has changed.
    """
    return _KINDS[kind](house, told)


def told_of(seat: Seat, now_s: float) -> dict[str, Any]:
    """A seat, with what it has to do."""
    engine, checkup = seat.engine, seat.engine.checkup
    return {
        "engine": engine.name,
        "url": engine.origin.url,
        "served": seat.served,
        "role": seat.role,
        "weight": seat.weight,
        "backup": seat.backup,
        "in_flight": engine.in_flight,
        "max_in_flight": seat.max_in_flight,
        "load": round(engine.load(now_s), 3),
        "draining": engine.draining,
        "process": None if engine.process is None else engine.process.state.value,
        "failing": engine.breaker.is_open(now_s) or engine.is_unreachable,
        "trouble": _trouble_of(engine),
        "healthy": None if engine.health is None or not checkup.is_known else not checkup.is_ill,
    }


def _trouble_of(engine: Engine) -> str | None:
    """What is wrong with it, or with the last start of its command."""
    if (trouble := engine.current_trouble) is not None:
        return trouble.why
    return None if engine.process is None else engine.process.failure


def _add(house: House, told: str) -> dict[str, Any]:
    new = NewEngine.model_validate_json(told)
    engine = EngineConfig(
        url=new.url,
        weight=new.weight,
        max_in_flight=new.max_in_flight,
        model=new.served,
        role=new.role,
        bootstrap_port=new.bootstrap_port,
        backup=new.backup,
    )
    check_elsewhere(engine.origin, house.listen)
    now_s = house.now_s()
    return told_of(house.roster.seat(_model(house, new), engine, now_s), now_s)


def _change(house: House, told: str) -> dict[str, Any]:
    to = Change.model_validate_json(told)
    seat = _seat(house, to)
    if to.weight is not None:
        seat.weight = to.weight
    if to.draining is not None:
        if seat.engine.draining and not to.draining:
            seat.engine.since_s = house.now_s()  # it was taken back, and has likely been started anew
        seat.engine.draining = to.draining
    if to.max_in_flight is not None:
        seat.max_in_flight = to.max_in_flight
    house.lobby.stir()
    return told_of(seat, house.now_s())


def _remove(house: House, told: str) -> dict[str, Any]:
    place = Place.model_validate_json(told)
    seat = _seat(house, place)
    house.roster.unseat(_model(house, place), seat)
    return told_of(seat, house.now_s())


def _reload(house: House, told: str) -> dict[str, Any]:
    house.adopt(msgspec.json.decode(told, type=Config))
    return {}


_KINDS: dict[str, Callable[[House, str], dict[str, Any]]] = {
    "add": _add,
    "change": _change,
    "remove": _remove,
    "reload": _reload,
}


def _model(house: House, place: Place) -> Model:
    model = house.roster.models.get(place.model)
    if model is None:
        there = ", ".join(house.roster.models)
        message = f"There is no model {place.model!r}, only {there}; a new one comes with the file and a reload."
        raise Refused(refusals.bad_request(message, status=404, code="model_not_found"))
    return model


def _seat(house: House, place: Place) -> Seat:
    """By its url, or by its name, as logs and metrics have it."""
    places = _model(house, place).places()
    origin = origin_of(place.url) if "://" in place.url else None
    for seat in places:
        if seat.engine.origin == origin or seat.engine.name == place.url:
            return seat
    there = ", ".join(seat.engine.name for seat in places) or "none"
    message = f"The model {place.model!r} has no engine {place.url}; it has {there}."
    raise Refused(refusals.bad_request(message, status=404))
