"""One file that needs nothing else, works offline and can be sent to someone: what all pages have in common.

A page's own policy forbids every request, and every script but those written here; what came from outside is escaped
by ``markup`` and ``charts``.
"""

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from string import Template

BYTES_MAX = 1_480_000
"""Of the whole page: it shall go through any mail. The charts' points get what the rest leaves."""

_LIBRARIES = {"plotly": "plotly-basic.min.js", "plots": "plots.js"}


def assembled(name: str, styles: Sequence[str], written: Mapping[str, str], data: Callable[[int], str]) -> str:
    """``page.html`` around ``name``.html; ``data`` makes the charts' JSON from the bytes that are left for it."""
    scripts = {part: asset(file) for part, file in {**_LIBRARIES, "app": f"{name}.js"}.items()}
    css = "\n".join(asset(style) for style in styles)
    parts = {**scripts, **written, "css": css, "policy": _policy(scripts.values())}
    page = asset("page.html").replace("$body", asset(f"{name}.html"))
    room = BYTES_MAX - sum(len(text.encode()) for text in (page, *parts.values()))
    return Template(page).substitute(parts, data=data(room))


def _policy(scripts: Iterable[str]) -> str:
    """Plotly writes style attributes, hence the laxer rule for those."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:"


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def asset(name: str) -> str:
    """A file that is shipped with the reports."""
    return resources.files("withstand.report").joinpath("assets", name).read_text("utf-8")
