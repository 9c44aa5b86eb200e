"""The lines of a record file, plain, ``.gz`` or ``.zst``: in blocks, which several readers may share out among them.

A reader goes through the whole file and takes its share of the blocks: that needs no index and no cooperation, and to
unpack a file twice costs less than to hand its lines from one process to another. It does not know what a line says.
"""

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from withstand.errors import StorageError, UsageError, extra
from withstand.files import discard, make_durable, storage_error

_BLOCK_BYTES = 1 << 20
_LEVEL = 3


class Share(msgspec.Struct, frozen=True):
    """Of ``count`` readers the one at ``index``."""

    index: int = 0
    count: int = 1


WHOLE = Share()


class DamagedError(Exception):
    """The rest of a compressed file cannot be unpacked."""


def lines_of(path: Path, share: Share) -> Iterator[bytes]:
    """The lines of a reader's share. Each but one that a crash has cut has its newline.

    Raises:
        DamagedError: after the last line before the damage.
        StorageError: it cannot be read.
    """
    try:
        for number, block in enumerate(_blocks(path)):
            if number % share.count == share.index:
                yield from io.BytesIO(block)
    except OSError as e:
        raise StorageError(f"{path} cannot be read: {e.strerror}.") from None


def _blocks(path: Path) -> Iterator[bytes]:
    """Whole lines, about 1 MiB at a time; where each block ends follows from what the file holds alone."""
    rest, damage = bytearray(), None
    try:
        for piece in _UNPACKERS.get(path.suffix, _plain)(path):
            rest += piece
            end = rest.rfind(b"\n") + 1 if len(rest) >= _BLOCK_BYTES else 0
            if end:
                yield bytes(rest[:end])
                del rest[:end]
    except DamagedError as e:
        damage = e
    yield bytes(rest)
    if damage:
        raise damage


def _plain(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_BLOCK_BYTES):
            yield piece


def _gzipped(path: Path) -> Iterator[bytes]:
    """One read at a time: what stands before a damage shall not be lost with it."""
    try:
        with gzip.open(path) as file:
            while piece := file.read1(_BLOCK_BYTES):
                yield piece
    except (EOFError, gzip.BadGzipFile, zlib.error) as e:
        raise DamagedError from e


def _zstandard(path: Path) -> Iterator[bytes]:
    """Frame after frame; one that does not end is damaged."""
    try:
        import zstandard  # noqa: PLC0415  an extra
    except ImportError:
        raise UsageError(f"{path} is packed with zstd: {extra('zstd')}, or unpack it.") from None
    frame = None
    try:
        for packed in _plain(path):
            rest = packed
            while rest:
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                yield frame.decompress(rest)
                rest, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    except zstandard.ZstdError as e:
        raise DamagedError from e
    if frame:
        raise DamagedError


_UNPACKERS = {".gz": _gzipped, ".zst": _zstandard}


def pack(lines: Iterable[bytes], path: Path, instead_of: Iterable[Path]) -> None:
    """Lines into a compressed file, all of them or nothing changed; then what they come from is removed.

    Raises:
        StorageError: it cannot be written; what they come from stays.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with gzip.open(temporary, "wb", compresslevel=_LEVEL) as out:
            out.writelines(lines)
        make_durable(temporary)
        temporary.replace(path)
        for source in instead_of:
            source.unlink(missing_ok=True)
    except OSError as e:
        discard(temporary)
        raise storage_error(path, e) from None
