"""The waist: facts of a request and of its measurer. Whatever sends writes them, whatever judges reads them."""

from withstand.record.health import LOOK_NS, STALL_NS, ClockOffset, Health, Place, Spread
from withstand.record.record import (
    SCHEMA,
    Clock,
    Record,
    Status,
    TokensFrom,
    decode_record,
    encode_record,
)

__all__ = [
    "LOOK_NS",
    "SCHEMA",
    "STALL_NS",
    "Clock",
    "ClockOffset",
    "Health",
    "Place",
    "Record",
    "Spread",
    "Status",
    "TokensFrom",
    "decode_record",
    "encode_record",
]
