"""What all connections of a gateway share, where there is no gateway."""

import asyncio
import contextlib
from collections.abc import Iterator

from withstand.gateway.config import config_of
from withstand.gateway.house import House


@contextlib.contextmanager
def quiet_house(**limits: int) -> Iterator[House]:
    """Nobody is served there, and its loop does not run."""
    models = {"m": {"engines": [{"url": "http://127.0.0.1:9"}]}}
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        yield House(config_of({"models": models, "limits": limits}), loop, local=True)
