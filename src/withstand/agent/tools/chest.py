"""The tools that a configuration gives."""

from collections.abc import Callable

from withstand.agent.config import Config
from withstand.agent.tools.calculator import calculator
from withstand.agent.tools.fetch import fetch
from withstand.agent.tools.files import read_file
from withstand.agent.tools.search import search_tool
from withstand.agent.tools.tool import Tool


def tools_of(config: Config) -> dict[str, Tool]:
    """By name.

    Raises:
        UsageError: what one of them needs is not there.
    """
    makers: dict[str, Callable[[], Tool]] = {
        "search": lambda: search_tool(config.search),
        "calculator": calculator,
        "read_file": lambda: read_file(config.files),
        "fetch": lambda: fetch(config.http),
    }
    useless = {name for name, allow in (("read_file", config.files.allow), ("fetch", config.http.allow)) if not allow}
    return {name: makers[name]() for name in dict.fromkeys(config.tools) if name not in useless}
