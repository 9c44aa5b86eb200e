"""What one worker knows of its own errors in one stage: facts for the self-check, judged elsewhere.

None = not known: the system does not tell, or the worker died.
"""

import msgspec

LOOK_NS = 100_000
"""Events that share a read are ``unsure`` when one may have lain there for longer than this before the last."""
STALL_NS = 1_000_000
"""A turn of the event loop that works for longer is a stall."""


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
    runqueue_wait_ns: int | None = None
    """Time in which the worker could have run and had no core: somebody else had it (Linux)."""
    forced_switches: int | None = None
    """How often a core was taken from it while it worked."""
    rss_bytes_max: int | None = None
    lag: Spread | None = None
    """User clock minus kernel stamp at each read: how late our own code looked. None without kernel stamps."""
    blind: Spread | None = None
    """Reads that our own clock stamped: the longest that each can have lain there, back to the look before."""
    loop_stall_ns_max: int = 0
    """The longest time between two turns of the event loop spent working, not waiting."""
    loop_stalls: int | None = None
    """Turns above ``STALL_NS``."""
    loop_stall_ns: int | None = None
    """The time that all of them took."""
    gc_pauses: int | None = None
    gc_pause_ns: int | None = None
    """The time that all of them took."""
    gc_pause_ns_max: int = 0
    reads: int = 0
    shared_reads: int = 0
    """Reads that brought more than one output event: their events share a stamp."""
    descriptor_limit: int | None = None
    descriptors_max: int | None = None
    connections_max: int = 0
    dials: int | None = None
    """Connections that were opened: each took a local port, which rests for a minute when it is closed."""
    ports: int | None = None
    """How many local ports there are towards one address."""
    clock_steps: int | None = None
    """How often the wall clock, in which the kernel stamps, was set."""
    clock_drift_ns: int | None = None
    """How far wall clock and monotonic clock went apart besides."""
    clock_width_ns: int | None = None
    """How well the offset between the two is known, at the worst of all measurements."""
    lost: bool = False
    """The process died; its finished records are there, the rest is not."""
    place: Place | None = None
    """None = the machine that started the run."""
