"""Dialects without I/O: Request → bytes, bytes → Reply; and what engines say of themselves (``engine_metrics``).

Stamps are handed in; no clock is read here.
"""

from withstand.wire.dialect import Ask, Dialect
from withstand.wire.reply import Reply, StreamReader, WholeReader

__all__ = ["Ask", "Dialect", "Reply", "StreamReader", "WholeReader"]
