"""The administration of engines while requests are under way: add, remove, drain, weigh."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from withstand.gateway import refusals
from withstand.gateway.address import origin_of
from withstand.gateway.config import EngineConfig, Role
from withstand.gateway.control.asking import Refused, administers, house_of, reloader_of
from withstand.gateway.engine import Seat
from withstand.gateway.house import House
from withstand.gateway.reload import Reloader
from withstand.gateway.roster import Model

router = APIRouter(prefix="/admin", dependencies=[Depends(administers)])
_House = Annotated[House, Depends(house_of)]
_Weight = Annotated[float, Field(ge=0, le=1000)]
_AtOnce = Annotated[int, Field(ge=1)]


class Place(BaseModel):
    """An engine among those of a model."""

    model: str
    url: str


class NewEngine(Place):
    """One to add; ``served`` is the model's name there, where it is another."""

    weight: _Weight = 1.0
    max_in_flight: _AtOnce | None = None
    served: str | None = None
    role: Role | None = None
    bootstrap_port: Annotated[int, Field(ge=1, lt=1 << 16)] | None = None


class Change(Place):
    """What is to be other than it was."""

    weight: _Weight | None = None
    max_in_flight: _AtOnce | None = None
    draining: bool | None = None


@router.get("/engines")
async def engines(house: _House) -> dict[str, Any]:
    """All seats, with what they have to do."""
    now_s = house.now_s()
    return {name: [_told(seat, now_s) for seat in model.places()] for name, model in house.roster.models.items()}


@router.post("/engines", status_code=201)
async def add(new: NewEngine, house: _House) -> dict[str, Any]:
    """One more engine."""
    told = EngineConfig(
        url=new.url,
        weight=new.weight,
        max_in_flight=new.max_in_flight,
        model=new.served,
        role=new.role,
        bootstrap_port=new.bootstrap_port,
    )
    now_s = house.now_s()
    return _told(house.roster.seat(_model(house, new), told, now_s), now_s)


@router.patch("/engines")
async def change(to: Change, house: _House) -> dict[str, Any]:
    """Another weight or limit; or no more requests for an engine, for whichever model, until it is taken back."""
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
    return _told(seat, house.now_s())


@router.delete("/engines")
async def remove(place: Annotated[Place, Depends()], house: _House) -> dict[str, Any]:
    """One engine less; what it has under way goes on to its end."""
    seat = _seat(house, place)
    house.roster.unseat(_model(house, place), seat)
    return _told(seat, house.now_s())


@router.post("/reload")
async def reload(house: _House, reloader: Annotated[Reloader, Depends(reloader_of)]) -> dict[str, Any]:
    """Go by the file as it is now; where it is wrong, nothing changes."""
    await reloader.reload()
    return await engines(house)


def _model(house: House, place: Place) -> Model:
    model = house.roster.models.get(place.model)
    if model is None:
        raise Refused(refusals.unknown_model(place.model))
    return model


def _seat(house: House, place: Place) -> Seat:
    origin = origin_of(place.url)
    for seat in _model(house, place).places():
        if seat.engine.origin == origin:
            return seat
    raise Refused(refusals.bad_request(f"{place.url} does not serve {place.model!r}.", status=404))


def _told(seat: Seat, now_s: float) -> dict[str, Any]:
    engine = seat.engine
    return {
        "engine": engine.name,
        "served": seat.served,
        "role": seat.role,
        "weight": seat.weight,
        "in_flight": engine.in_flight,
        "max_in_flight": seat.max_in_flight,
        "load": round(engine.load(now_s), 3),
        "draining": engine.draining,
        "process": None if engine.process is None else engine.process.state.value,
        "failing": engine.breaker.is_open(now_s),
    }
