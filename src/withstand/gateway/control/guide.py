"""``/docs``: one page that needs nothing from elsewhere. It lists the engines' routes too, and who may ask."""

from collections.abc import Iterator
from html import escape
from typing import Any

from withstand.gateway.routes import ROUTES

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>withstand gateway</title>
<style>body{{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}
td{{padding:.2em 1em .2em 0}}</style>
<h1>withstand gateway {version}</h1>
<p>Where keys are configured, each request shows one as <code>Authorization: Bearer KEY</code>,
<code>x-api-key</code> or <code>api-key</code>; <code>/admin</code> takes one with <code>admin = true</code>.
<code>/health</code>,
<code>/ready</code>, <code>/docs</code> and, unless <code>open_metrics = false</code>, <code>/metrics</code> take none.
The types are in <a href="openapi.json">openapi.json</a>.</p>
<table>{rows}</table></html>
"""


def guide(schema: dict[str, Any]) -> str:
    """The page, of an OpenAPI document."""
    rows = "".join(
        f"<tr><td><code>{escape(how)} {escape(path)}</code><td>{escape(what)}" for how, path, what in _rows(schema)
    )
    return _PAGE.format(version=escape(schema["info"]["version"]), rows=rows)


def of_engines() -> dict[str, Any]:
    """Paths of an OpenAPI document: what engines answer, of which the gateway knows next to nothing."""
    body = {"type": "object", "required": ["model"], "properties": {"model": {"type": "string"}}}
    told = {
        "summary": "To an engine",
        "description": "To an engine of the model that the body names.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": {"description": "The engine's answer."}},
    }
    return {path: {"post": told} for path in ROUTES}


def _rows(schema: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for path, methods in schema["paths"].items():
        for method, told in methods.items():
            yield method.upper(), path, told.get("description", "").partition("\n")[0]
