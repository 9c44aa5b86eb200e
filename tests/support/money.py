"""Keys, prices and engines that tell their usage, for tests of what a key may do."""

import hashlib
import time
from typing import Any

import msgspec

from engines import DONE, END, EVENT, STREAM_HEAD, Behave, Seen, Talk, chunk, whole
from gateways import PATIENCE_S, Gateway, model

ADMIN = {"authorization": "Bearer sk-root"}


def key(owner: str, secret: str, more: str = "") -> str:
    return f'[keys.{owner}]\nsha256 = "{hashlib.sha256(secret.encode()).hexdigest()}"\n{more}\n'


def bearer(secret: str) -> str:
    return f"Authorization: Bearer {secret}\r\n"


def usage(prompt: int = 10, completion: int = 5, cached: int = 0) -> bytes:
    told = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return msgspec.json.encode({"usage": told})


def spends(prompt: int = 10, completion: int = 5, cached: int = 0) -> Behave:
    return lambda talk, seen: talk.say(whole(usage(prompt, completion, cached)))


def streams(events: int, end: bytes = b"") -> Behave:
    """A stream that tells its usage only where it is asked to, and goes on until it is left where there is no end."""

    def behave(talk: Talk, seen: Seen) -> None:
        talk.say(STREAM_HEAD, *[chunk(EVENT) for _ in range(events)])
        if not end:
            talk.wait_for_leave(seen)
            return
        if (seen.json.get("stream_options") or {}).get("include_usage"):
            talk.say(chunk(b"data: " + usage(7, 3) + b"\n\n"))
        talk.say(chunk(DONE), end)

    return behave


ENDING = END


def toml(url: str, more: str = "", alice: str = "") -> str:
    """A model with a price, an administrator, and alice."""
    price = "[prices.m]\ninput = 1000\noutput = 2000\ncached_input = 100\n"
    return more + key("root", "sk-root", "admin = true") + key("alice", "sk-alice", alice) + price + model(url)


def rows(gateway: Gateway, query: str = "") -> list[dict[str, Any]]:
    status, told = gateway.control("GET", f"/admin/usage{query}", **ADMIN)
    assert status == 200, told
    found: list[dict[str, Any]] = told["usage"]
    return found


def row_of(gateway: Gateway, owner: str, requests: int) -> dict[str, Any]:
    """The key's only row, when so many requests are settled."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        found = rows(gateway, f"?key={owner}")
        if found and found[0]["requests"] == requests:
            return found[0]
        assert time.monotonic() < end_s, found
        time.sleep(0.01)
