"""What a gateway's owner may say of engines that the gateway starts: typed, frozen."""

from typing import Annotated

from msgspec import Meta, Struct

Seconds = Annotated[float, Meta(gt=0)]
Gigabytes = Annotated[float, Meta(gt=0)]


class Hosted(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of one engine. Without ``command`` it is somebody else's, and the others say nothing."""

    command: tuple[Annotated[str, Meta(min_length=1)], ...] | None = None
    """Without a shell; it must stay in the foreground and listen where ``url`` says."""
    env: dict[str, str] = {}
    """Laid over the gateway's own environment."""
    cwd: str | None = None
    ready: Annotated[str, Meta(pattern=r"^/[!-~]*$")] = "/health"
    """The path that answers with 2xx once it is ready."""
    start_timeout_s: Seconds = 600.0
    idle_s: Seconds = 300.0
    """So long without a request, and it is stopped."""
    stop_s: Annotated[float, Meta(ge=0, le=3600)] = 10.0
    """How long it may take to end; then it is killed."""
    log: str | None = None
    """What it says, appended; without, that of its last start is kept in the state folder."""
    memory_gb: Gigabytes | None = None


class HostConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all of them share."""

    memory_gb: Gigabytes | None = None
    """Those that are up at once take no more than this, together."""
    residence_s: Annotated[float, Meta(ge=0)] = 30.0
    """So long an engine stays that was started, though another model wants its place."""
    state: str | None = None
    """The folder of logs and records; without, ``engines`` in ``$WITHSTAND_STATE`` or ``~/.local/state/withstand``."""


def wrong_with(hosted: Hosted, host: HostConfig) -> tuple[str, str] | None:
    """The field that cannot be, and why; None where all is well."""
    if hosted.command is None:
        return None
    if not hosted.command:
        return "command", "an empty command starts nothing; name a program, or leave it out"
    if host.memory_gb is None:
        return None
    if hosted.memory_gb is None:
        return "memory_gb", "[host] has memory_gb, so each engine with a command says how much it takes"
    if hosted.memory_gb > host.memory_gb:
        return "memory_gb", f"{hosted.memory_gb:g} GB never fit into the {host.memory_gb:g} GB of [host]"
    return None
