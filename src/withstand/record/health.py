"""What one worker knows of its own errors in one stage: facts for the self-check, judged elsewhere."""

import msgspec


class Spread(msgspec.Struct, frozen=True):
    """Count, median, p99 and maximum of something in ns."""

    n: int
    p50_ns: int
    p99_ns: int
    max_ns: int


class ClockOffset(msgspec.Struct, frozen=True):
    """Another machine's monotonic clock minus that of the machine that started the run."""

    offset_ns: int
    error_ns: int
    """The offset is not further off than this: half of the shortest round trip by which it was measured."""
    drift_ns: int | None = None
    """By how much it was another at the stage's end; None = not measured again."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's host, where that is not the machine that started the run."""

    host: str
    niceness: int
    """Of the worker's process; above 0 it waits for everyone else on its host."""
    clock: ClockOffset


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """One worker, one stage."""

    worker: int
    sent: int
    finished: int
    wall_ns: int
    cpu_ns: int
    rss_bytes_max: int | None = None
    lag: Spread | None = None
    """User clock minus kernel stamp at each read: how late our own code looked. None without kernel stamps."""
    loop_stall_ns_max: int = 0
    """The longest time between two turns of the event loop spent working, not waiting."""
    gc_pause_ns_max: int = 0
    reads: int = 0
    shared_reads: int = 0
    """Reads that brought more than one output event: their events share a stamp."""
    descriptor_limit: int | None = None
    connections_max: int = 0
    lost: bool = False
    """The process died; its finished records are there, the rest is not."""
    place: Place | None = None
    """None = the machine that started the run."""
