"""How a client is told of its limits: pure, in OpenAI's header lines or Anthropic's."""

import math
from collections.abc import Mapping

from withstand import clock
from withstand.gateway.money.meter import Room
from withstand.gateway.routes import Dialect


def lines_of(rooms: Mapping[str, Room], dialect: Dialect, wall_s: float) -> bytes:
    """Lines for a head, each with its end."""
    told = _anthropic(rooms, wall_s) if dialect is Dialect.ANTHROPIC else _openai(rooms)
    return "".join(f"{name}: {value}\r\n" for name, value in told.items()).encode("ascii")


def _openai(rooms: Mapping[str, Room]) -> dict[str, object]:
    told: dict[str, object] = {}
    for name, room in rooms.items():
        told[f"x-ratelimit-limit-{name}"] = room.limit
        told[f"x-ratelimit-remaining-{name}"] = room.remaining
        told[f"x-ratelimit-reset-{name}"] = _duration(room.reset_s)
    return told


def _anthropic(rooms: Mapping[str, Room], wall_s: float) -> dict[str, object]:
    told: dict[str, object] = {}
    for name, room in rooms.items():
        told[f"anthropic-ratelimit-{name}-limit"] = room.limit
        told[f"anthropic-ratelimit-{name}-remaining"] = room.remaining
        told[f"anthropic-ratelimit-{name}-reset"] = clock.utc_iso(math.ceil(wall_s + room.reset_s) * 10**9)
    return told


def _duration(seconds: float) -> str:
    """``1m0s``, ``250ms``, ``0s``: rounded up, so that nobody comes too early."""
    ms = math.ceil(seconds * 1000)
    if ms < 1000:
        return f"{ms}ms" if ms else "0s"
    minutes, rest = divmod(math.ceil(ms / 1000), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
