"""Who follows which run: each run is followed once, however many pages look on, by a thread that ends with the last.

A page gets the newest look and never a queue of old ones, so a slow reader costs no memory and holds nobody up.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from withstand.report.json import finite

COURSES_MAX = 16
PAGES_MAX = 256
_QUIET_S = 15.0
"""After so long without news a page is told that we are still there; else a gone one would never be noticed."""

Follow = Callable[[Path], Iterator[Any]]


class Course:
    """One run that is followed. All but ``_follow`` is the loop's thread's."""

    def __init__(self, path: Path, follow: Follow) -> None:
        self._loop = asyncio.get_running_loop()
        self._path = path
        self._source = follow
        self._changed = asyncio.Event()
        self._left = threading.Event()
        self.latest = b""
        self.number = 0
        """Of looks that there were."""
        self.is_over = False
        self.pages = 0
        threading.Thread(target=self._follow, daemon=True).start()

    def leave(self) -> None:
        """Nobody looks on any more."""
        self._left.set()
        self._end()

    async def changed(self) -> None:
        """Wait for news."""
        await self._changed.wait()

    def _follow(self) -> None:
        try:
            for look in self._source(self._path):
                if self._left.is_set():
                    return
                self._call(self._publish, msgspec.json.encode(finite(msgspec.to_builtins(look))))
        finally:
            self._call(self._end)

    def _call(self, function: Callable[..., None], *arguments: bytes) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    def _publish(self, look: bytes) -> None:
        self.latest = look
        self.number += 1
        self._wake()

    def _end(self) -> None:
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Hub:
    """For one event loop."""

    def __init__(self, follow: Follow) -> None:
        self._follow = follow
        self._courses: dict[Path, Course] = {}

    def course(self, path: Path) -> Course | None:
        """That of a run; None where there are too many already."""
        for old in [path for path, course in self._courses.items() if course.is_over]:
            del self._courses[old]
        course = self._courses.get(path)
        if sum(one.pages for one in self._courses.values()) >= PAGES_MAX:
            return None
        if course is None and len(self._courses) < COURSES_MAX:
            course = self._courses[path] = Course(path, self._follow)
        return course

    def stop(self) -> None:
        """All streams end."""
        for course in self._courses.values():
            course.leave()


async def events(course: Course) -> AsyncIterator[bytes]:
    """The stream of one page: ``look`` after ``look``, and ``end``, after which it must not come again."""
    course.pages += 1
    seen = 0
    try:
        while True:
            if course.number > seen:
                seen = course.number
                yield b"event: look\ndata: " + course.latest + b"\n\n"
            elif course.is_over:
                yield b"event: end\ndata: {}\n\n"
                return
            else:
                try:
                    async with asyncio.timeout(_QUIET_S):
                        await course.changed()
                except TimeoutError:
                    yield b": still here\n\n"
    finally:
        course.pages -= 1
        if course.pages == 0:
            course.leave()
