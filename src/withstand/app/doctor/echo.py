"""Our echo engine: a truth server in a process of its own, which keeps every request as it came.

It is started, never imported, and told by lines how to answer what comes next.
"""

import contextlib
import select
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from withstand import clock
from withstand.doctor.headers import Came
from withstand.errors import ClientLimitError, MeasureError
from withstand.load.child import Child

_ANSWER_S = 20.0
_TTFT_MS = 30.0


class Served(msgspec.Struct, frozen=True):
    """One request, as the echo engine's log has it; times are ns on our own clock."""

    came: Came
    connection_request: int
    """The how-manieth on its connection, from 0."""
    aborted_ns: int | None = None
    """When it saw that its client had left."""
    done_ns: int | None = None


class Echo:
    """While the context lasts."""

    def __init__(self, host: str, port: int, itl_ms: float, log: Path) -> None:
        """Start it.

        Raises:
            ClientLimitError: the address cannot be had.
            MeasureError: it does not come up.
        """
        self._child = Child("withstand.testing.truth.child", log)
        config: dict[str, Any] = {"host": host, "port": port, "keep_requests": True}
        config["schedule"] = {"ttft_ms": _TTFT_MS, "itl_ms": itl_ms, "tokens": 96}
        started = msgspec.json.decode(self._ask(msgspec.json.encode(config)), type=dict[str, str | None])
        if error := started["error"]:
            self._child.end()
            raise ClientLimitError(error.replace("host, port", "--echo-at"))
        self.url = started["base_url"] or ""

    def play(self, how: str = "") -> None:
        """Answer what comes from now on so: ``ttft=30,behaviour=http_503``; nothing = as at first."""
        self._ask(b"play " + how.encode())

    def reset(self) -> None:
        """Forget what came."""
        self._ask(b"reset")

    def served(self, mark: str) -> list[Served]:
        """The requests whose body holds this mark, in order of arrival."""
        log = msgspec.json.decode(self._ask(b"truth"), type=list[Served])
        return [one for one in log if mark.encode() in one.came.body]

    def end(self) -> None:
        """Stop it."""
        self._child.end()

    def _ask(self, line: bytes) -> bytes:
        self._child.send(line)
        until_ns = clock.now_ns() + int(_ANSWER_S * 1e9)
        while (left_s := (until_ns - clock.now_ns()) / 1e9) > 0:
            if not select.select([self._child], [], [], left_s)[0]:
                break
            if heard := self._child.hear():
                return heard[-1]
            if self._child.ended:
                raise MeasureError(f"The echo engine has died: {self._child.why()}.")
        raise MeasureError("The echo engine does not answer; is this machine too busy?")


@contextlib.contextmanager
def echo_engine(host: str, port: int, itl_ms: float) -> Iterator[Echo]:
    """One that listens there while the context lasts."""
    with tempfile.TemporaryDirectory(prefix="withstand-echo-") as room:
        echo = Echo(host, port, itl_ms, Path(room) / "echo.log")
        try:
            yield echo
        finally:
            echo.end()
