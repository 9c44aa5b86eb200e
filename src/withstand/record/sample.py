"""What was seen of the server's side at one instant: one row of facts from one source. It judges nothing.

Names are a closed set, whatever an engine calls them; a name that is not there is unknown, never 0.
"""

from enum import StrEnum

import msgspec

# Schema history
# 1  2026-11  the first
SAMPLE_SCHEMA = 1

HOST = "host"
"""The source of facts about the machine that sends; a GPU of it is ``gpu0``, ``gpu1`` …; else it is a URL.

A GPU that a URL tells of stands behind it: ``http://node-a:9400/metrics gpu0``.
"""


class Seen(StrEnum):
    """What a value is of. Counters grow for as long as the server runs; the others are of the instant."""

    RUNNING = "running"
    """Requests that are computed."""
    WAITING = "waiting"
    """Requests that the engine has and does not compute yet."""
    KV_SHARE = "kv_share"
    """Of the KV cache in use, 0 to 1."""
    PREFIX_QUERIES = "prefix_queries"
    """Counter: prompt tokens that were looked up in the prefix cache."""
    PREFIX_HITS = "prefix_hits"
    """Counter: those that were found there."""
    PREFIX_SHARE = "prefix_share"
    """Found of looked up, by the engine's own reckoning, where it has no counters."""
    PREEMPTIONS = "preemptions"
    """Counter: requests that lost their place, and what they had computed with it."""
    QUEUE_S = "queue_s"
    QUEUED = "queued"
    """Counters: seconds in the engine's queue, and of how many requests."""
    PREFILL_S = "prefill_s"
    PREFILLED = "prefilled"
    """Counters: seconds from the queue's end to the first token."""
    TTFT_S = "ttft_s"
    ANSWERED = "answered"
    """Counters: seconds to the first token by the server's clock, and of how many requests."""
    TRANSFERS = "transfers"
    TRANSFER_S = "transfer_s"
    TRANSFER_BYTES = "transfer_bytes"
    """Counters: KV caches that came from another engine, the seconds that took, and their bytes."""
    TRANSFERS_FAILED = "transfers_failed"
    """Counter: those that did not come."""
    PASSING = "passing"
    """Requests under way through a gateway: waiting there, or at an engine."""
    HELD = "held"
    """Those of them that wait there for an engine that has room."""
    HOP_S = "hop_s"
    HOPPED = "hopped"
    """Counters: seconds in a gateway alone, and of how many requests."""
    CPU_SHARE = "cpu_share"
    """Of all cores of the machine, 0 to 1, since the sample before."""
    MEMORY_AVAILABLE_BYTES = "memory_available_bytes"
    GPU_SHARE = "gpu_share"
    """Of the time in which a kernel ran, 0 to 1."""
    GPU_MEMORY_SHARE = "gpu_memory_share"
    GPU_WATTS = "gpu_watts"
    GPU_JOULES = "gpu_joules"
    """Counter: energy that a GPU has taken."""
    CPU_JOULES = "cpu_joules"
    """Counter: energy that the machine's CPU packages have taken."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One look at one source."""

    schema: int = SAMPLE_SCHEMA
    at_ns: int
    """Since the run's epoch: the middle between question and answer."""
    source: str
    engine: str | None = None
    """Whose names they were: ``vLLM``, ``SGLang``, ``TGI``, ``llama.cpp``, ``withstand gateway``."""
    values: dict[Seen, float]


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Sample)


def encode_sample(sample: Sample) -> bytes:
    """One line, without its newline."""
    return _encoder.encode(sample)


def decode_sample(line: bytes) -> Sample:
    """A line read back.

    Raises:
        msgspec.MsgspecError: the line is no sample (cut off, or another schema).
    """
    return _decoder.decode(line)
