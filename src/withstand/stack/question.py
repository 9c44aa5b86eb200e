"""Whether one service is ready, asked beside everything else: some take a second for each answer (SGLang does)."""

from threading import Thread

from withstand.stack.service import is_healthy

_ANSWER_S = 20.0


class Question:
    """Asked again until it is answered with 200, never twice at once. It knows one start of one service."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._asking: Thread | None = None
        self._is_answered = False

    def is_answered(self) -> bool:
        """At once, by what is known now."""
        if not self._is_answered and not (self._asking and self._asking.is_alive()):
            self._asking = Thread(target=self._ask, daemon=True)
            self._asking.start()
        return self._is_answered

    def _ask(self) -> None:
        self._is_answered = is_healthy(self._url, _ANSWER_S)
