"""Times as people write them: ``90s``, ``20m``, ``1.5h``."""

import re

import click

_TIME = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|min|h)?")
_SECONDS = {"ms": 1e-3, None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds(_context: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    """A callback for options: in seconds.

    Raises:
        click.BadParameter: it is no time.
    """
    if value is None:
        return None
    match = _TIME.fullmatch(value.strip().lower())
    found = float(match["number"]) * _SECONDS[match["unit"]] if match else 0.0
    if found <= 0:
        raise click.BadParameter(f"{value!r} is no time, such as 90s, 20m or 1.5h.")
    return found
