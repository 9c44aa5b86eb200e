"""What NVIDIA's DCGM exporter says of each GPU of a node, or of several nodes. Pure.

Names and units are those of its default counters: power in W, energy in mJ since the driver was loaded, utilisation in
percent, memory in MiB. Parts of a GPU (MIG) tell the power of the whole: a GPU counts once.
"""

import math
from collections.abc import Mapping

from withstand.record import Seen
from withstand.wire.prometheus import Series, read_series

_POWER, _ENERGY = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
_BUSY, _USED, _FREE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
_WANTED = frozenset({_POWER, _ENERGY, _BUSY, _USED, _FREE})


def read_gpus(text: str) -> dict[str, dict[Seen, float]]:
    """``node-a/gpu0`` → what is known of it; without a node where it does not tell one."""
    found: dict[str, dict[str, float]] = {}
    for series in read_series(text, _WANTED):
        name = _name(series)
        if name and math.isfinite(series.value) and series.value >= 0:
            told = found.setdefault(name, {})
            told[series.name] = max(told.get(series.name, 0.0), series.value)
    return {name: values for name, told in found.items() if (values := _values(told))}


def _name(series: Series) -> str | None:
    """None where it does not say which GPU."""
    gpu, node = series.labels.get("gpu"), series.labels.get("Hostname")
    if not gpu:
        return None
    return f"{node}/gpu{gpu}" if node else f"gpu{gpu}"


def _values(told: Mapping[str, float]) -> dict[Seen, float]:
    used, free = told.get(_USED), told.get(_FREE)
    memory = used + free if used is not None and free is not None else 0.0
    values = {
        Seen.GPU_WATTS: told.get(_POWER),
        Seen.GPU_JOULES: told[_ENERGY] / 1000 if _ENERGY in told else None,
        Seen.GPU_SHARE: told[_BUSY] / 100 if _BUSY in told else None,
        Seen.GPU_MEMORY_SHARE: used / memory if used is not None and memory else None,
    }
    return {seen: value for seen, value in values.items() if value is not None}
