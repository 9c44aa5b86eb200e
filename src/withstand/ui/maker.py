"""Pages and files that are made when they are asked for: by our own command line, in a process that has an end.

A folder may hang, be huge or crash its reader; then this process is killed, and its one sentence, or ours, is shown.
What was made lies in a temporary folder, never in the folder that is shown.
"""

import asyncio
import contextlib
import hashlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from withstand.processes.courtesy import go_after_others
from withstand.ui.entry import shown
from withstand.ui.walk import Place

LIMIT_S = 120.0
_AT_ONCE = 2
_WAITING_MAX = 16
_KEPT_MAX = 64
_SAYS = "withstand: "


class Recipe(msgspec.Struct, frozen=True):
    """What can be made, and how."""

    verb: str
    form: str
    suffix: str
    media_type: str


RECIPES = {
    "report": Recipe("report", "html", ".html", "text/html; charset=utf-8"),
    "json": Recipe("report", "json", ".json", "application/json"),
    "csv": Recipe("report", "csv", ".csv", "text/csv; charset=utf-8"),
    "comparison": Recipe("compare", "html", ".html", "text/html; charset=utf-8"),
}


class NotMadeError(Exception):
    """One sentence on why."""


class Maker:
    """For one event loop."""

    def __init__(self, folder: Path, limit_s: float = LIMIT_S) -> None:
        self._folder = folder
        self._limit_s = limit_s
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._going: dict[str, asyncio.Task[None]] = {}
        self._made: dict[str, Path] = {}
        self._groups: set[int] = set()

    def path_of(self, name: str) -> tuple[Path, Recipe] | None:
        """What was made under this name."""
        path = self._made.get(name)
        return (path, RECIPES[name.partition("-")[0]]) if path else None

    async def make(self, what: str, places: Sequence[Place]) -> str:
        """The name under which it can be had.

        Raises:
            NotMadeError: it cannot be, or takes too long.
        """
        name = f"{what}-{_digest(places)}"
        if name not in self._made:
            if name not in self._going:
                if len(self._going) >= _WAITING_MAX:
                    raise NotMadeError("Too much is being made at the moment; try again when it is done.")
                self._going[name] = asyncio.create_task(self._cook(name, RECIPES[what], places))
            await asyncio.shield(self._going[name])
        return name

    async def _cook(self, name: str, recipe: Recipe, places: Sequence[Place]) -> None:
        try:
            async with self._turn:
                path = self._folder / f"{name}{recipe.suffix}"
                said = await self._run(recipe, places, path)
                if not path.is_file():
                    raise NotMadeError(said)
                self._keep(name, path)
        finally:
            del self._going[name]

    def _keep(self, name: str, path: Path) -> None:
        self._made[name] = path
        while len(self._made) > _KEPT_MAX:
            self._made.pop(next(iter(self._made))).unlink(missing_ok=True)

    async def _run(self, recipe: Recipe, places: Sequence[Place], output: Path) -> str:
        """What it said last."""
        options = ("--format", recipe.form, "--output", str(output), "--")
        paths = [str(place.path) for place in places]
        command = (sys.executable, "-P", "-m", "withstand", recipe.verb, *options, *paths)
        pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *command, stdin=nowhere, stdout=nowhere, stderr=pipe, start_new_session=True
        )
        self._groups.add(process.pid)
        try:
            go_after_others(process.pid)  # a run may be going on beside us
            async with asyncio.timeout(self._limit_s):
                _, said = await process.communicate()
        except TimeoutError:
            raise NotMadeError(f"It was given up after {self._limit_s:g} s: there is too much to read.") from None
        finally:
            _kill(process.pid)
            await process.wait()
            self._groups.discard(process.pid)
        return _sentence(said) or f"It could not be made (exit code {process.returncode})."

    def close(self) -> None:
        """Nothing goes on when we are gone."""
        for group in self._groups:
            _kill(group)


def _digest(places: Sequence[Place]) -> str:
    """Of the places as they are now: what has changed is made again."""
    told = msgspec.json.encode([(os.fsencode(place.path), place.stamps) for place in places])
    return hashlib.blake2b(told, digest_size=9).hexdigest()


def _kill(group: int) -> None:
    """With all that it has started; it may have ended by itself."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _sentence(said: bytes) -> str:
    lines = [line.removeprefix(_SAYS) for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    return shown(lines[-1]) or "" if lines else ""
