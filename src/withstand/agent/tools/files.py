"""``read_file``: texts from an allow-list of files and folders, and nothing that a link leads out of it."""

import asyncio
import os
import stat
from pathlib import Path

from withstand.agent.config import FilesConfig
from withstand.agent.tools.tool import Tool, ToolError
from withstand.errors import SpecError


def read_file(config: FilesConfig) -> Tool:
    """The tool.

    Raises:
        SpecError: what is allowed is not there.
    """
    allowed = [_there(path, i) for i, path in enumerate(config.allow)]

    async def run(path: str) -> str:
        return await asyncio.to_thread(read, path, allowed, config.bytes_max)

    return Tool(
        name="read_file",
        purpose=f"Reads a text file. Readable: {', '.join(config.allow)}.",
        argument="path",
        meaning="the file's path",
        run=run,
    )


def _there(path: str, i: int) -> Path:
    try:
        return Path(path).resolve(strict=True)
    except OSError as e:
        raise SpecError(f"files.allow[{i}]: {path} cannot be read: {e.strerror}.") from None


def read(path: str, allowed: list[Path], bytes_max: int) -> str:
    """The file's text, up to ``bytes_max``. A relative path is below any of the folders allowed.

    Raises:
        ToolError: it is not allowed, not there, or no text.
    """
    try:
        places = [Path(os.path.realpath(base / path)) for base in allowed]
        place = next(p for p in places for base in allowed if p.is_relative_to(base) and p.exists())
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except StopIteration:
        raise ToolError(f"{path} is not there, or may not be read.") from None
    except (OSError, ValueError):
        raise ToolError(f"{path[:100]!r} cannot be read.") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or Path(os.path.realpath(place)) != place:
            raise ToolError(f"{path} is no file.")
        data = os.read(descriptor, bytes_max)
    finally:
        os.close(descriptor)
    if b"\0" in data:
        raise ToolError(f"{path} is no text.")
    return data.decode("utf-8", "replace")
