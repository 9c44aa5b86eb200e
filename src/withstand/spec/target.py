"""WHERE requests go. Secrets stand here by reference only: the name of a variable, the path of a file."""

from typing import Annotated, Any

import msgspec

from withstand.spec.arrivals import Seconds
from withstand.spec.price import Price
from withstand.spec.serve import Serve


class Timeouts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every wait has an end. ``read_s`` is the longest silence, ``total_s`` the longest request."""

    connect_s: Seconds = 10.0
    read_s: Seconds = 300.0
    total_s: Seconds = 1800.0


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One endpoint. Without ``base_url`` the embedded engine is started."""

    base_url: str | None = None
    """``http://127.0.0.1:8000``, with or without ``/v1``; ``https``, ``[::1]`` and ``unix:/path.sock`` too."""
    backend: str = "openai-chat"
    """The wire dialect: ``openai-chat`` or ``openai`` (completions)."""
    endpoint: str | None = None
    """The path, where it is not the dialect's own."""
    model: str | None = None
    """None = the first one that the endpoint lists."""
    stream: bool = True
    preconnect: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    """Connections that are opened before each stage begins; more are opened as they are needed."""
    api_key_env: str | None = None
    api_key_file: str | None = None
    max_tokens_field: str | None = None
    """The body's field for the wanted length, where it is not the dialect's own."""
    headers: dict[str, str] = {}
    extra_body: dict[str, Any] = {}
    cacert: str | None = None
    insecure: bool = False
    timeouts: Timeouts = Timeouts()
    serve: Serve | None = None
    """Started for the length of a run, and listens at ``base_url``."""
    metrics_urls: tuple[str, ...] = ()
    """Of what serves this target, in place of ``watch.urls``."""
    price: Price | None = None
    """Of this target, laid over the plan's."""
