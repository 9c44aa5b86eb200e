"""Work that the loop shall not wait for: in a thread; where a limit allows no more threads, the loop waits after all.

Asyncio's own executor is not for the gateway: where it may start no thread, not even its end goes by without one.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def aside(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What comes of it, be it an exception."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # who asked may leave meanwhile

    def go_on() -> None:
        try:
            done.set_result(work(*args, **kwargs))
        except Exception as e:  # noqa: BLE001  it is for whoever asked
            done.set_exception(e)

    try:
        Thread(target=go_on, name="aside", daemon=True).start()
    except RuntimeError:
        go_on()
    return await asyncio.wrap_future(done)
