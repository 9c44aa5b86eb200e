"""Another configuration while requests are under way: all of it, or, where one thing in it is wrong, nothing."""

import asyncio
from collections.abc import Callable

import msgspec

from withstand.errors import SpecError, UsageError, WithstandError
from withstand.gateway.aside import aside
from withstand.gateway.config import Config
from withstand.gateway.control.crew import Crew
from withstand.gateway.house import House

Reread = Callable[[], Config]
"""Reads the file once more."""
_FOR_LIFE = ("listen", "state", "state_env", "workers", "busy_polling", "cache_warming", "telemetry")
"""What is opened once."""


class Reloader:
    """``reread`` is None where the gateway was started without a file. ``tell`` hears what came of each reload."""

    def __init__(self, house: House, reread: Reread | None, crew: Crew, tell: Callable[[str], None]) -> None:
        self._house = house
        self._crew = crew
        self._reread = reread
        self._tell = tell
        self._one_at_a_time = asyncio.Lock()

    def _summary(self) -> str:
        """What there is now, in a few words."""
        config = self._house.config
        engines = sum(len(model.engines) for model in config.models.values())
        counts = {"model": len(config.models), "engine": engines, "key": len(config.keys)}
        return ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items())

    async def reload(self) -> None:
        """Read the file, check it, and go by it from the next request on; it has been told then.

        Raises:
            UsageError: it is wrong, or asks for what takes a restart; nothing has changed then.
            WithstandError: it went wrong as nobody foresaw.
        """
        had_keys = bool(self._house.config.keys)
        try:
            await self._take()
        except WithstandError as e:
            self._tell(f"The configuration stays as it was. {e}")
            raise
        except Exception as e:
            fault = f"The configuration cannot be read again: {e!r}."
            self._tell(fault)
            raise WithstandError(fault) from e
        is_open = had_keys and not self._house.config.keys
        opened = "; no key is asked for any more" if is_open else ""
        self._tell(f"The configuration was read again: {self._summary()}{opened}.")

    async def _take(self) -> None:
        if self._reread is None:
            raise UsageError("This gateway was started without a file, so there is none to read again.")
        async with self._one_at_a_time:  # else an older reading might come last
            config = await aside(self._reread)
            for name in _FOR_LIFE:
                is_now, was = getattr(config, name), getattr(self._house.config, name)
                if is_now != was:
                    raise SpecError(f"`$.{name}` is {_said(is_now)} now and was {_said(was)}; that takes a restart.")
            await self._crew.make("reload", msgspec.json.encode(config).decode())


def _said(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "nothing" if value is None else str(value)
