"""The waist: facts of a request and of its measurer. Whatever sends writes them, whatever judges reads them."""

from withstand.record.health import LOOK_NS, STALL_NS, Health, Spread
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
    "Health",
    "Record",
    "Spread",
    "Status",
    "TokensFrom",
    "decode_record",
    "encode_record",
]
