"""The waist: facts of a request and of its measurer. Whatever sends writes them, whatever judges reads them."""

from withstand.record.health import LOOK_NS, STALL_NS, ClockOffset, Health, Place, Spread
from withstand.record.outage import ON_PURPOSE, STARTED_ANEW, TAKEN_DOWN, Outage
from withstand.record.record import (
    OUR_DOING,
    SCHEMA,
    Clock,
    Record,
    Status,
    Step,
    TokensFrom,
    decode_record,
    encode_record,
)
from withstand.record.sample import HOST, SAMPLE_SCHEMA, Sample, Seen, decode_sample, encode_sample

__all__ = [
    "HOST",
    "LOOK_NS",
    "ON_PURPOSE",
    "OUR_DOING",
    "SAMPLE_SCHEMA",
    "SCHEMA",
    "STALL_NS",
    "STARTED_ANEW",
    "TAKEN_DOWN",
    "Clock",
    "ClockOffset",
    "Health",
    "Outage",
    "Place",
    "Record",
    "Sample",
    "Seen",
    "Spread",
    "Status",
    "Step",
    "TokensFrom",
    "decode_record",
    "decode_sample",
    "encode_record",
    "encode_sample",
]
