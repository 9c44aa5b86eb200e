"""A real Chromium that is driven while time goes on: pages are opened, clicked, looked at. By its debugging pipe."""

import base64
import contextlib
import fcntl
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pages import CHROMIUM

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
PATIENCE_S = 30.0


class Tab:
    """One page."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.said: list[str] = []
        """By the console: errors, and what a policy has forbidden."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _read(self) -> Any:
        while b"\0" not in self._buffer:
            data = os.read(self._from, 1 << 20)
            assert data, "the browser has gone"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def _note(self, event: Any) -> None:
        if event.get("method") == "Runtime.exceptionThrown":
            self.said.append(json.dumps(event["params"]["exceptionDetails"].get("exception", {}).get("description")))
        if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.said.append(event["params"]["entry"]["text"])

    def open(self, url: str, width: int = 1400, *, dark: bool = False, height: int = 1000) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=url)

    def value(self, expression: str) -> Any:
        """Of a piece of JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def until(self, expression: str) -> Any:
        """Wait until it is true; its value."""
        end_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < end_s:
            with contextlib.suppress(AssertionError):  # between two pages there is nothing to ask
                value = self.value(expression)
                if value or value == {}:  # an element comes as that
                    return value
            time.sleep(0.03)
        raise AssertionError(f"never true: {expression}; {self.said}; {self.value('document.body.innerText')[:2000]}")

    def key(self, name: str, text: str = "") -> None:
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", key=name, code=name, text=text, windowsVirtualKeyCode=KEYS[name]
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=KEYS[name])

    def picture(self, path: Path) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=False)
        path.write_bytes(base64.b64decode(shot["data"]))


KEYS = {"Tab": 9, "Enter": 13, " ": 32}


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Tab]:
    """A browser of its own, gone at the end."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()

    def at_3_and_4() -> None:
        """Where it looks for them; by way of others, for they may be each other's."""
        first, second = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, from_write))
        os.dup2(first, 3)
        os.dup2(second, 4)

    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}"]
    with subprocess.Popen(
        command,
        preexec_fn=at_3_and_4,  # noqa: PLW1509  no threads in a test
        close_fds=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(to_read)
        os.close(from_write)
        try:
            yield Tab(to_write, from_read)
        finally:
            process.terminate()
            os.close(to_write)
            os.close(from_read)
