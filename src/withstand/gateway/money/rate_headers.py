"""How a client is told of its limits: pure, in OpenAI's header lines or Anthropic's."""

import math
from collections.abc import Mapping

from withstand import clock
from withstand.gateway.money.meter import Room
from withstand.gateway.routes import Dialect


def lines_of(rooms: Mapping[str, Room], dialect: Dialect, wall_s: float) -> bytes:
    """Lines for a head, each behind its line break."""
    form = _anthropic if dialect is Dialect.ANTHROPIC else _openai
    return "".join([form(name, room, wall_s) for name, room in rooms.items()]).encode("ascii")


def _openai(name: str, room: Room, _: float) -> str:
    return (
        f"\r\nx-ratelimit-limit-{name}: {room.limit}"
        f"\r\nx-ratelimit-remaining-{name}: {room.remaining}"
        f"\r\nx-ratelimit-reset-{name}: {_duration(room.reset_s)}"
    )


def _anthropic(name: str, room: Room, wall_s: float) -> str:
    reset = clock.utc_iso(math.ceil(wall_s + room.reset_s) * 10**9)
    return (
        f"\r\nanthropic-ratelimit-{name}-limit: {room.limit}"
        f"\r\nanthropic-ratelimit-{name}-remaining: {room.remaining}"
        f"\r\nanthropic-ratelimit-{name}-reset: {reset}"
    )


def _duration(seconds: float) -> str:
    """``1m0s``, ``250ms``, ``0s``: rounded up, so that nobody comes too early."""
    ms = math.ceil(seconds * 1000)
    if ms < 1000:
        return f"{ms}ms" if ms else "0s"
    minutes, rest = divmod(math.ceil(ms / 1000), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
