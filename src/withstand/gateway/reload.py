"""Another configuration while requests are under way: all of it, or, where one thing in it is wrong, nothing."""

import asyncio
from collections.abc import Callable

import msgspec

from withstand.errors import SpecError, UsageError
from withstand.gateway.config import Config
from withstand.gateway.control.crew import Crew
from withstand.gateway.house import House

Reread = Callable[[], Config]
"""Reads the file once more."""
_FOR_LIFE = ("listen", "state", "state_env", "workers", "busy_polling", "cache_warming", "telemetry")
"""What is opened once."""


class Reloader:
    """``reread`` is None where the gateway was started without a file."""

    def __init__(self, house: House, reread: Reread | None, crew: Crew) -> None:
        self._house = house
        self._crew = crew
        self._reread = reread
        self._one_at_a_time = asyncio.Lock()

    @property
    def summary(self) -> str:
        """What there is now, in a few words."""
        config = self._house.config
        engines = sum(len(model.engines) for model in config.models.values())
        counts = {"model": len(config.models), "engine": engines, "key": len(config.keys)}
        return ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items())

    async def reload(self) -> None:
        """Read the file, check it, and go by it from the next request on.

        Raises:
            UsageError: it is wrong, or asks for what takes a restart; nothing has changed then.
        """
        if self._reread is None:
            raise UsageError("This gateway was started without a file, so there is none to read again.")
        async with self._one_at_a_time:  # else an older reading might come last
            config = await asyncio.to_thread(self._reread)
            for name in _FOR_LIFE:
                is_now, was = getattr(config, name), getattr(self._house.config, name)
                if is_now != was:
                    raise SpecError(f"`$.{name}` is {_said(is_now)} now and was {_said(was)}; that takes a restart.")
            await self._crew.make("reload", msgspec.json.encode(config).decode())


def _said(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "nothing" if value is None else str(value)
