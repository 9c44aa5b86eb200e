"""Curves kept as columns: an object with the loads in one list, and for each metric a list of as many values.

No tool of its own: charts, notebooks and articles keep their numbers so. A column is taken where its name tells metric,
statistic and unit (``ttft_p50_ms``); the loads may be called ``x`` where the object's own name says what they are.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from withstand.interop import values
from withstand.interop.build import RunBuilder
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place

_TIME = re.compile(
    r"^(?P<metric>ttft|tpot|itl|e2el?|latency|e2el?_latency|total|total_latency)"
    r"_(?P<stat>mean|avg|median|p\d{1,2}(?:\.\d+)?)_(?P<unit>ms|s)$"
)
_METRICS = {"ttft": "ttft", "tpot": "tpot", "itl": "itl"}
_SCALES = {"ms": 1.0, "s": 1000.0}
_SPEED = re.compile(r"^tok(?:en)?s?_(?:per_)?s.*per_request$", re.IGNORECASE)
_OUTPUT = re.compile(r"^(?:output_)?(?:throughput_)?tok(?:en)?s?_(?:per_)?s(?:ec|econd)?$", re.IGNORECASE)
_SUCCESS = frozenset({"success_pct", "success_percent"})
_CAPS = ("max_concurrency", "num_concurrency", "concurrency")
_RATES = ("request_rate", "target_rps", "rps")
_NAMELESS = "x"
_LOADS_MAX = 1000


class _Curves(msgspec.Struct, frozen=True):
    """An object's loads, what they are, and its columns."""

    kind: str
    loads: list[Any]
    columns: dict[str, list[Any]]
    odd: dict[str, int]
    """Lists of another length."""


def _curves(value: Mapping[str, Any]) -> _Curves | None:
    for kind in (*_CAPS, *_RATES, _NAMELESS):
        loads = value.get(kind)
        if isinstance(loads, list) and 0 < len(loads) <= _LOADS_MAX and all(map(_is_load, loads)):
            lists = {key: column for key, column in value.items() if isinstance(column, list) and key != kind}
            columns = {key: column for key, column in lists.items() if len(column) == len(loads)}
            odd = {key: len(column) for key, column in lists.items() if key not in columns}
            return _Curves(kind, loads, columns, odd)
    return None


def _is_load(value: object) -> bool:
    return (values.number(value) or 0) > 0 or values.is_unlimited(value)


def recognises(value: Mapping[str, Any]) -> bool:
    """A list of loads, and at least one of times that is as long."""
    curves = _curves(value)
    return curves is not None and any(_TIME.match(key.lower()) for key in curves.columns)


def read(value: Mapping[str, Any], place: Place) -> list[ImportedRun]:
    """A run for each load."""
    curves = _curves(value)
    assert curves is not None
    name = (place.position or "").rpartition(", ")[2]
    kind = _kind_in(name) if curves.kind == _NAMELESS else curves.kind
    runs = []
    for index, load in enumerate(curves.loads):
        run = place.at(f"[{index}]").builder("curves in columns", "unknown")
        run.label("heading", name)
        _take_load(run, kind, load)
        for key, column in curves.columns.items():
            _take(run, key, column[index])
        for key, length in curves.odd.items():
            run.leave(key, f"it has {length} values for {len(curves.loads)} loads.")
        runs.append(run.build())
    return runs


def _kind_in(name: str) -> str | None:
    return next((kind for kind in (*_CAPS, *_RATES) if kind in name.lower()), None)


def _take_load(run: RunBuilder, kind: str | None, load: object) -> None:
    if kind in _CAPS:
        run.condition("max_concurrency", load)
        run.rate("inf")
    elif kind in _RATES:
        run.rate(load)
    else:
        run.leave(_NAMELESS, "it is a load, and nothing tells which.")
        run.label(_NAMELESS, load)


def _take(run: RunBuilder, key: str, value: object) -> None:
    """One cell; its column's name says what it is."""
    time = _TIME.match(key.lower())
    if time:
        which = "mean" if time["stat"] == "avg" else time["stat"]
        run.stat(_METRICS.get(time["metric"], "e2el"), which, value, _SCALES[time["unit"]], said=key)
    elif _SPEED.match(key):
        run.stat("speed_per_request", "mean", value, said=key)
    elif _OUTPUT.match(key):
        run.number("output_throughput", value, said=key)
        run.note(["output_throughput"], f"is called {key}: whether of all requests or of each, nothing tells.")
    elif key.lower() in _SUCCESS:
        run.label("success_percent", value)
    elif values.number(value) is not None:
        run.leave(key, "its name does not tell metric, statistic and unit.")
