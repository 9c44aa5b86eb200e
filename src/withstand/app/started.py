"""What the plan has us start for the length of a run: the user's own server, the embedded engine, or nothing."""

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from withstand.app.journal import ENGINE_LOG, Journal
from withstand.app.screen import Screen
from withstand.spec import Plan
from withstand.stack import EngineInfo, embedded_engine, served


class Started:
    """It answers inside the block. ``engine`` is the embedded one, if it is that."""

    def __init__(self, plan: Plan, journal: Journal, screen: Screen) -> None:
        self._target = plan.target
        self._log = journal.folder.path / ENGINE_LOG
        self._journal = journal
        self._screen = screen
        self._up = ExitStack()
        self.engine: EngineInfo | None = None

    def __enter__(self) -> Self:
        """Raises EngineError where it does not come up."""
        if self._target.serve:
            ready_s = self._serve()
            self._journal.served(ready_s)
            self._screen.message(f"The server is ready after {ready_s:.1f} s.")
        elif self._target.base_url is None:
            engine = self.engine = self._up.enter_context(embedded_engine(self._screen.step, self._log))
            self._journal.engine(engine)
            told = f"{engine.name}, {engine.model}, {engine.base_url}"
            self._screen.message(f"Engine ready after {engine.ready_s:.1f} s: {told}")
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        """It is gone."""
        self._up.__exit__(kind, e, at)

    def again(self) -> float:
        """Ends the user's server and starts it anew: after how many seconds it was ready.

        Raises:
            EngineError: it does not come up.
        """
        self._up.close()
        return self._serve()

    def _serve(self) -> float:
        assert self._target.serve
        server = served(self._target.serve, self._target.base_url, self._screen.step, self._log)
        return self._up.enter_context(server).ready_s
