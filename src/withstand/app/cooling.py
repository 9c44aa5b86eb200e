"""Has a server become cold before a stage that is to begin so, by the way that the plan names."""

import contextlib
import http.client
from collections.abc import Iterator, Sequence
from typing import Final

from withstand import clock
from withstand.app.cold import cold_way
from withstand.app.endpoint import Endpoint
from withstand.app.estimate import lasting
from withstand.app.screen import Screen
from withstand.app.started import Started
from withstand.app.watching import asker_of, exporters_of
from withstand.errors import MeasureError, SpecError, TargetError, UsageError
from withstand.load.ask import Asker
from withstand.spec import Plan, Stage
from withstand.wire.prometheus import read_series

_UP: Final = "withstand_gateway_engine_up"
_LOOK_S = 0.25
_LOOKS = 2
"""One after another: an engine that is told to end is no longer up, but still there."""


def check_cold(plan: Plan, stages: Sequence[Stage]) -> None:
    """What can be wrong with cold stages, before anything is begun.

    Raises:
        SpecError: the way to a cold server lacks something, or a stage has answers that cannot all be cold.
    """
    cold = [stage for stage in stages if stage.cold]
    if not cold:
        return
    way = cold_way(plan)
    if way == "restart" and plan.target.serve is None:
        raise SpecError("cold.by = restart starts the server of [target.serve] anew, and the plan has none.")
    if way == "pause" and plan.cold.pause_s is None:
        raise SpecError("cold.by = pause needs cold.pause_s: after how many seconds without a request it is cold.")
    if way != "restart" and plan.target.base_url is None:
        raise SpecError("The embedded engine is never cold: name a server by target.base_url / --base-url.")
    for stage in cold:
        if stage.num_prompts is None or (stage.max_concurrency or stage.num_prompts) < stage.num_prompts:
            raise SpecError(
                f"Stage {stage.name} is cold, so all its prompts go at once: give num_prompts, and no max_concurrency "
                "below that."
            )


class Cooling:
    """Of one run against one endpoint."""

    def __init__(self, plan: Plan, endpoint: Endpoint, started: Started, screen: Screen) -> None:
        self._cold = plan.cold
        self._way = cold_way(plan)
        self._plan = plan
        self._endpoint = endpoint
        self._started = started
        self._screen = screen

    def cool(self, stage: Stage) -> float | None:
        """The server is cold; after how many seconds it was ready, where it was started anew.

        Raises:
            UsageError: nobody tells when it is.
            MeasureError: it does not become so.
        """
        if self._way == "restart":
            return self._started.again()
        if self._way == "pause":
            assert self._cold.pause_s is not None
            self._screen.message(f"Stage {stage.name}: nothing is sent for {lasting(self._cold.pause_s)}.")
            clock.sleep_s(self._cold.pause_s)
            return None
        self._screen.message(f"Stage {stage.name}: waits until the gateway has stopped its engines.")
        with self._gateway() as gateway:
            gateway.wait(self._cold.within_s)
        return None

    @contextlib.contextmanager
    def _gateway(self) -> Iterator["_Gateway"]:
        """The first exporter that knows of engines which a gateway starts."""
        exporters = exporters_of(self._plan.asked_watch, self._endpoint)
        for exporter in exporters:
            with contextlib.closing(asker_of(exporter, self._plan.target.timeouts)) as asker:
                gateway = _Gateway(asker, exporter.path)
                if gateway.engines_up() is not None:
                    yield gateway
                    return
        raise UsageError(
            f"Nothing tells when the server is cold: no {_UP}, which our gateway has for engines that it starts, at "
            f"{', '.join(exporter.name for exporter in exporters)}. Give cold.pause_s, or a [target.serve]."
        )


class _Gateway:
    """Ours, by its metrics."""

    def __init__(self, asker: Asker, path: str) -> None:
        self._asker = asker
        self._path = path

    def engines_up(self) -> int | None:
        """Of those that it starts; None = it does not tell."""
        try:
            status, body = self._asker.ask("GET", self._path)
        except TargetError:
            return None
        if status != http.client.OK:
            return None
        told = [series.value for series in read_series(body.decode("utf-8", "replace"), (_UP,))]
        return sum(value > 0 for value in told) if told else None

    def wait(self, within_s: float) -> None:
        """Until none of them is.

        Raises:
            MeasureError: that is too long.
        """
        give_up_ns = clock.now_ns() + int(within_s * 1e9)
        down = 0
        while down < _LOOKS:
            if clock.now_ns() > give_up_ns:
                raise MeasureError(
                    f"The gateway has not stopped its engines within {lasting(within_s)}; does somebody else ask them? "
                    "cold.within_s allows more time, and idle_s in its configuration says how soon it stops them."
                )
            down = down + 1 if self.engines_up() == 0 else 0
            clock.sleep_s(_LOOK_S)
