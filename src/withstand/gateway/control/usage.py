"""What keys have used and spent, for who administers."""

from calendar import monthrange
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import AfterValidator

from withstand.errors import StorageError
from withstand.gateway import refusals
from withstand.gateway.control.asking import Refused, administers, asks, asks_once, house_of
from withstand.gateway.house import House
from withstand.gateway.keys import Key
from withstand.gateway.money.bill import NANO
from withstand.gateway.money.rows import Slot, Sums

router = APIRouter(prefix="/admin", dependencies=[Depends(administers), Depends(asks_once)])


def _day(text: str) -> str:
    """As it is; a ValueError where the calendar has no such day."""
    year, month, day = map(int, text.split("-"))
    if not 1 <= day <= monthrange(year, month)[1]:
        raise ValueError(text)
    return text


_Day = Annotated[str, Query(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), AfterValidator(_day)]
own = APIRouter()


@own.get("/v1/key")
async def of_key(house: Annotated[House, Depends(house_of)], key: Annotated[Key, Depends(asks)]) -> dict[str, Any]:
    """What the key that asks may use, and has left."""
    models = None if key.models is None else sorted(key.models)
    return {"key": key.owner, "models": models, "admin": key.admin, **house.till.terms(key, house.now_s())}


@router.get("/usage")
async def usage(
    house: Annotated[House, Depends(house_of)],
    since: _Day = "0000-00-00",
    until: _Day = "9999-99-99",
    key: str | None = None,
    model: str | None = None,
) -> dict[str, Any]:
    """Sums by key, model and day (UTC), of all processes that share the state; both days are included."""
    if since > until:
        message = f"The field 'since' is {since}, later than 'until', {until}; exchange them."
        raise Refused(refusals.bad_request(message, status=422))
    try:
        found = await house.till.books.usage(since, until)
    except StorageError as e:
        raise Refused(refusals.bad_request(str(e), status=503)) from None
    rows = [_told(slot, sums) for slot, sums in sorted(found.items()) if _fits(slot, key, model)]
    return {"usage": rows, "under_way": house.till.under_way()}


def _fits(slot: Slot, key: str | None, model: str | None) -> bool:
    return key in {None, slot.owner} and model in {None, slot.model}


def _told(slot: Slot, sums: Sums) -> dict[str, Any]:
    return {
        "key": slot.owner,
        "model": slot.model,
        "day": slot.day,
        "requests": sums.requests,
        "estimated": sums.estimated,
        "prompt_tokens": sums.prompt_tokens,
        "cached_tokens": sums.cached_tokens,
        "completion_tokens": sums.completion_tokens,
        "cost_usd": sums.cost_nusd / NANO,
    }
