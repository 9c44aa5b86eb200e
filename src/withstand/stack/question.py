"""Whether one service is ready, asked beside everything else: some take a second for each answer (SGLang does)."""

from threading import Thread

from withstand.stack.service import HEALTHY, status_at

_ANSWER_S = 20.0


class Question:
    """Asked again until it is answered with 200, never twice at once. It knows one start of one service."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._asking: Thread | None = None
        self.status: int | None = None
        """That was answered last; None = nothing was."""

    def is_answered(self) -> bool:
        """At once, by what is known now."""
        if self.status != HEALTHY and not (self._asking and self._asking.is_alive()):
            self._asking = Thread(target=self._ask, daemon=True)
            self._asking.start()
        return self.status == HEALTHY

    def _ask(self) -> None:
        self.status = status_at(self._url, _ANSWER_S)
