"""The plan's requests on their way to the workers: one file of JSON lines a worker, written ahead and read behind.

A file and not a pipe, so that a slow writer and a slow reader cannot stall each other; a session is always one
worker's. The last line is ``end``.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from withstand.errors import StorageError
from withstand.request import Request

_END = b'"end"\n'
_READ_BYTES = 1 << 14
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Request).decode


class SpoolWriter:
    """Deals requests out to ``workers`` files in a folder."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._paths = [folder / f"requests.w{i}.jsonl" for i in range(workers)]
        self._files = [path.open("wb", buffering=1 << 16) for path in self._paths]
        self.written = [0] * workers
        self.bytes = 0

    def path(self, worker: int) -> Path:
        """What worker ``worker`` reads."""
        return self._paths[worker]

    def write(self, request: Request) -> int:
        """One more; the worker that it went to."""
        worker = request.session % len(self._files)
        line = _encode(request) + b"\n"
        self._checked(worker, line)
        self.written[worker] += 1
        self.bytes += len(line)
        return worker

    def flush(self) -> None:
        """Let the workers see it."""
        for worker in range(len(self._files)):
            self._checked(worker, b"", flush=True)

    def finish(self) -> None:
        """No more will come."""
        for worker in range(len(self._files)):
            self._checked(worker, _END, flush=True)

    def _checked(self, worker: int, data: bytes, *, flush: bool = False) -> None:
        try:
            self._files[worker].write(data)
            if flush:
                self._files[worker].flush()
        except OSError as e:
            raise StorageError(
                f"The requests cannot be written to {self._paths[worker].parent}: {e.strerror}. "
                "Free some space or choose another --output-dir."
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        for file, path in zip(self._files, self._paths, strict=True):
            with contextlib.suppress(OSError):  # the disk is full; what matters has been said already
                file.close()
            path.unlink(missing_ok=True)


class SpoolReader:
    """Follows a file that grows."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self._tail = b""
        self.bytes_read = 0
        self.ended = False

    def close(self) -> None:
        """Give the descriptor back."""
        self._file.close()

    def read(self) -> Iterator[Request]:
        """The requests that have come since the last call: about 16 KiB of them, but at least one whole line."""
        if self.ended:
            return
        *lines, self._tail = self._whole_lines().split(b"\n")
        for line in lines:
            if line == _END[:-1]:
                self.ended = True
                return
            yield _decode(line)

    def _whole_lines(self) -> bytes:
        pieces = [self._tail]
        while piece := self._file.read(_READ_BYTES):
            pieces.append(piece)
            self.bytes_read += len(piece)
            if b"\n" in piece:
                break
        return b"".join(pieces)
