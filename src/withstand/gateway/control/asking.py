"""Who asks, and by which fields, for routes of the control plane.

They are coroutines all, since FastAPI takes what is none to a thread.
"""

from collections import Counter
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from withstand.gateway import refusals
from withstand.gateway.control import mistakes
from withstand.gateway.house import House
from withstand.gateway.keys import Key
from withstand.gateway.refusals import Refusal

if TYPE_CHECKING:
    from withstand.gateway.control.crew import Crew
    from withstand.gateway.reload import Reloader


class Refused(Exception):  # noqa: N818  it is not an error of anybody's
    """Raised by a route, answered in OpenAI's form."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


async def house_of(request: Request) -> House:
    """The gateway that the application belongs to."""
    house: House = request.app.state.house
    return house


async def reloader_of(request: Request) -> "Reloader":
    """What reads the gateway's file again."""
    reloader: Reloader = request.app.state.reloader
    return reloader


async def crew_of(request: Request) -> "Crew":
    """All workers of the gateway."""
    crew: Crew = request.app.state.crew
    return crew


async def asks(request: Request) -> Key:
    """The key of whoever asks.

    Raises:
        Refused: none, or none that is known.
    """
    headers = dict(reversed(request.scope["headers"]))
    key = (await house_of(request)).keyring.key_of(headers.get)
    if key is None:
        raise Refused(refusals.unauthorized())
    return key


async def administers(key: Annotated[Key, Depends(asks)]) -> Key:
    """The key of whoever may change things.

    Raises:
        Refused: this key may not.
    """
    if not key.admin:
        raise Refused(refusals.forbidden())
    return key


async def asks_once(request: Request) -> None:
    """Each field behind the path's ``?`` is one that the route has, and stands there once.

    Raises:
        Refused: otherwise what is meant is not known, and a filter that is passed over shows too much.
    """
    fields = [field.alias for field in request.scope["route"].dependant.query_params]
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in fields:
            raise Refused(refusals.bad_request(mistakes.unknown(name, fields), status=422))
        if count > 1:
            raise Refused(refusals.bad_request(f"The field {name!r} is given {count} times; give it once.", status=422))
