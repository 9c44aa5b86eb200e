"""Whether a request may go to an engine, to which model's, and on whose account."""

from typing import TYPE_CHECKING

from withstand.gateway import asked, refusals
from withstand.gateway.asked import Asked
from withstand.gateway.keys import Key, Shown
from withstand.gateway.money.till import Permit
from withstand.gateway.outgoing import Outgoing
from withstand.gateway.refusals import RETRY_AFTER_S, Refusal
from withstand.gateway.routes import Route

if TYPE_CHECKING:
    from withstand.gateway.house import House
    from withstand.gateway.roster import Model


class Admitted:
    """It may go. A permit holds what it may use until it is settled; None = nothing is counted."""

    __slots__ = ("key", "model", "permit", "told")

    def __init__(self, key: Key, model: "Model", told: Asked, permit: Permit | None) -> None:
        self.key = key
        self.model = model
        self.told = told
        self.permit = permit


class TurnedAway:
    """It may not; what else is known of it."""

    __slots__ = ("key", "model", "refusal")

    def __init__(self, refusal: Refusal, key: Key | None = None, model: "Model | None" = None) -> None:
        self.refusal = refusal
        self.key = key
        self.model = model


def admission(house: "House", outgoing: Outgoing, route: Route, shown: Shown) -> Admitted | TurnedAway:
    """By its key, its body's model, and what both may still have. ``shown`` is its connection's."""
    key = house.keyring.key_of(outgoing.head.header, shown)
    if key is None:
        return TurnedAway(refusals.unauthorized())
    if len(house.passages) >= house.config.limits.requests:
        return TurnedAway(refusals.busy(RETRY_AFTER_S), key)
    try:
        told = asked.read(outgoing.body)
    except ValueError as e:
        refusal = refusals.bad_request(f"The body must be a JSON object that names a model: {e}.")
        return TurnedAway(refusal, key)
    outgoing.named = told.model
    model = house.roster.by_name.get(told.model)
    if model is None or not (key.models is None or key.may_use(model.name)):
        return TurnedAway(refusals.unknown_model(told.model), key)
    permit = None if house.till.idle else house.till.admit(key, model.name, outgoing.body, route, house.now_s())
    if isinstance(permit, Refusal):
        return TurnedAway(permit, key, model)
    return Admitted(key, model, told, permit)
