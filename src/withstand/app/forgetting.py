"""Asks a server to forget the prompts that it has seen, where it can. What cannot be is no error, and is told.

vLLM: ``POST /reset_prefix_cache``, served with ``VLLM_SERVER_DEV_MODE=1``. SGLang: ``POST /flush_cache``. llama.cpp:
``POST /slots/ID?action=erase``, served with ``--slot-save-path``.
"""

import contextlib
import http.client

import msgspec

from withstand.app.endpoint import Endpoint
from withstand.load.address import Address
from withstand.load.ask import Asker
from withstand.spec import Target

_RESETS = ("/reset_prefix_cache", "/flush_cache")
_ABSENT = "the server has no reset of its prompts' cache"


class _Slot(msgspec.Struct, frozen=True):
    id: int


def forgotten(target: Target) -> str:
    """What came of it, in a few words. Each target is asked with its own headers.

    Raises:
        WithstandError: it is not there.
    """
    with contextlib.closing(Endpoint(target)) as endpoint:
        return _by_path(endpoint.asker, endpoint.address) or _by_slots(endpoint.asker, endpoint.address) or _ABSENT


def _by_path(asker: Asker, address: Address) -> str | None:
    for path in _RESETS:
        status, _ = asker.ask("POST", address.root_url(path))
        if status == http.client.OK:
            return f"the prompts' cache was reset by {path}"
        if status not in {http.client.NOT_FOUND, http.client.METHOD_NOT_ALLOWED, http.client.NOT_IMPLEMENTED}:
            return f"{path} answered HTTP {status}: the prompts' cache is not reset"
    return None


def _by_slots(asker: Asker, address: Address) -> str | None:
    status, body = asker.ask("GET", address.root_url("/slots"))
    try:
        slots = msgspec.json.decode(body, type=list[_Slot]) if status == http.client.OK else []
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # some other page of this name
        return None
    erased = [asker.ask("POST", address.root_url(f"/slots/{slot.id}?action=erase"))[0] for slot in slots]
    return "the slots were erased" if erased and set(erased) == {http.client.OK} else None
