"""The administration of engines while requests are under way: add, remove, drain, weigh, and the file again."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from withstand.gateway.control.asking import administers, asks_once, crew_of, house_of, reloader_of
from withstand.gateway.control.changes import Change, Name, NewEngine, Place, told_of
from withstand.gateway.control.crew import Crew
from withstand.gateway.house import House
from withstand.gateway.reload import Reloader

router = APIRouter(prefix="/admin", dependencies=[Depends(administers), Depends(asks_once)])
_House = Annotated[House, Depends(house_of)]
_Crew = Annotated[Crew, Depends(crew_of)]


@router.get("/engines")
async def engines(house: _House) -> dict[str, Any]:
    """All seats, with what they have to do."""
    now_s = house.now_s()
    return {name: [told_of(seat, now_s) for seat in model.places()] for name, model in house.roster.models.items()}


@router.post("/engines", status_code=201)
async def add(new: NewEngine, crew: _Crew) -> dict[str, Any]:
    """One more engine."""
    return await crew.make("add", new.model_dump_json())


@router.patch("/engines")
async def change(to: Change, crew: _Crew) -> dict[str, Any]:
    """Another weight or limit; or no more requests for an engine, for whichever model, until it is taken back."""
    return await crew.make("change", to.model_dump_json())


@router.delete("/engines")
async def remove(model: Name, url: Name, crew: _Crew) -> dict[str, Any]:
    """One engine less; what it has under way goes on to its end."""
    return await crew.make("remove", Place(model=model, url=url).model_dump_json())


@router.post("/reload")
async def reload(house: _House, reloader: Annotated[Reloader, Depends(reloader_of)]) -> dict[str, Any]:
    """Go by the file as it is now; where it is wrong, nothing changes."""
    await reloader.reload()
    return await engines(house)
