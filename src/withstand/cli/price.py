"""Options on cost → the tree of a plan's ``price``. What is typed wins: of an hour there is one price."""

from collections.abc import Mapping
from typing import Any

import msgspec

from withstand.errors import UsageError
from withstand.hints import hinted
from withstand.spec import Price

Tree = dict[str, Any]
_PRICE = {
    "price_per_hour": "per_hour",
    "price_per_gpu_hour": "per_gpu_hour",
    "gpus": "gpus",
    "price_per_kwh": "per_kwh",
}
_USAGE = {
    "busy_hours": "busy_hours",
    "requests_per_day": "requests_per_day",
    "idle_timeout": "idle_timeout_s",
    "cold_start": "cold_start_s",
}
_OF_AN_HOUR = ("per_hour", "per_gpu_hour")


def price_tree(options: Mapping[str, Any]) -> Tree:
    """What was typed, and nothing else."""
    tree = _given(options, _PRICE)
    if usage := _given(options, _USAGE):
        tree["usage"] = usage
    if options.get("against_token_price") is not None:
        tree["against"] = msgspec.to_builtins(options["against_token_price"])
    return tree


def _given(options: Mapping[str, Any], names: Mapping[str, str]) -> Tree:
    return {field: options[name] for name, field in names.items() if options.get(name) is not None}


def put_price(plan: Tree, options: Mapping[str, Any]) -> None:
    """Lay it over what the plan's tree says."""
    typed = price_tree(options)
    if not typed:
        return
    short = plan.pop("price_per_hour", None)
    said = ({} if short is None else {"per_hour": short}) | plan.get("price", {})
    if typed.keys() & set(_OF_AN_HOUR):
        said = {name: value for name, value in said.items() if name not in _OF_AN_HOUR}
    plan["price"] = said | typed


def price_told(options: Mapping[str, Any]) -> Price | None:
    """What was typed, of runs whose plans say the rest; None = nothing.

    Raises:
        UsageError: it cannot be a price.
    """
    tree = price_tree(options)
    try:
        return msgspec.convert(tree, Price) if tree else None
    except msgspec.ValidationError as e:
        raise UsageError(f"The price is wrong: {hinted(str(e), Price)}.") from None
