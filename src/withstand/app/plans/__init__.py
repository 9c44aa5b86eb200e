"""The plans that come along, as files that people can read: ``withstand run --plan NAME``."""

import tomllib
from importlib import resources
from typing import Any

from withstand.app.estimate import estimated, lasting
from withstand.app.stages import all_stages
from withstand.errors import UsageError
from withstand.report.numbers import counted
from withstand.spec import parse_plan

NAMES = ("standard", "long-context", "burst", "multi-turn", "agent", "soak", "cold-start")
LIST = "list"


def ready_made(name: str) -> dict[str, Any]:
    """The raw tree of one.

    Raises:
        UsageError: there is none of that name.
    """
    return tomllib.loads(text_of(name))


def text_of(name: str) -> str:
    """The file as it is.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in NAMES:
        raise UsageError(f"--plan: {name!r} is unknown; choose one of {', '.join(NAMES)}, or give a plan file.")
    return resources.files(__name__).joinpath(f"{name}.toml").read_text("utf-8")


def all_texts() -> str:
    """Every file, each under its name."""
    return "\n".join(f"# --plan {name}\n{text_of(name)}" for name in NAMES)


def listing() -> str:
    """A few lines for each: its name, its time, what it is and what for."""
    return "\n".join(f"{name} ({_time_of(name)})\n{_about(name)}" for name in NAMES)


def _time_of(name: str) -> str:
    plan = parse_plan(ready_made(name))
    estimate = estimated(plan, all_stages(plan))
    lasts = f"about {lasting(estimate.known_s)}" if estimate.known_s else "as long as their answers take"
    return f"{counted(estimate.stages, 'stage')}, {lasts}"


def _about(name: str) -> str:
    """The comment at its head."""
    head = text_of(name).split("\n\n")[0].splitlines()
    return "\n".join(f"    {line.removeprefix('# ')}" for line in head if line.startswith("# "))
