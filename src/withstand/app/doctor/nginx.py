"""nginx's configuration, as files: read with all that they include, and judged."""

import os
import select
from pathlib import Path

from withstand.doctor.finding import Finding, Verdict
from withstand.doctor.nginx_lint import linted
from withstand.doctor.nginx_syntax import parsed
from withstand.errors import UsageError

_BYTES_MAX = 16 << 20
"""Of all files together, each as often as it is included."""
_FILES_MAX = 2_000
"""As often as all of them are included."""
_SILENT_S = 10.0
"""A pipe that says nothing for so long is not waited for."""


def lint_nginx(path: Path) -> list[Finding]:
    """What the file would do to streams.

    Raises:
        UsageError: it cannot be read, or is none.
    """
    reading = _Reading(path)
    return linted(parsed(path.name, reading.text(path), reading.included))


def exit_code_of(findings: list[Finding]) -> int:
    """0: nothing is wrong; 1: something is; 3: nothing was there to judge."""
    verdicts = {finding.verdict for finding in findings}
    if Verdict.WRONG in verdicts:
        return 1
    return 3 if verdicts == {Verdict.NOT_TRIED} else 0


class _Reading:
    """A file and those that it includes, with a bound on all of them: each may include all the others twice."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files = 0
        self._bytes = 0

    def included(self, pattern: str) -> list[tuple[str, str]]:
        """Those that are there, as nginx takes them: below the main file's folder. A pattern may fit none."""
        at = Path(pattern)
        root, rest = (Path(at.anchor), at.relative_to(at.anchor)) if at.is_absolute() else (self._path.parent, at)
        if any(mark in pattern for mark in "*?["):
            return [(file.name, self.text(file)) for file in sorted(root.glob(str(rest)))]
        return [(at.name, self.text(root / rest))]

    def text(self, path: Path) -> str:
        """One file's.

        Raises:
            UsageError: it cannot be read, or all of them are more than a configuration is.
        """
        self._files += 1
        if self._files > _FILES_MAX:
            raise UsageError(f"nginx's configuration {self._path} includes more than {_FILES_MAX:,} files; is it one?")
        try:
            data = _bytes_of(path, _BYTES_MAX - self._bytes)
            self._bytes += len(data)
            return data.decode("utf-8")
        except OSError as e:
            raise UsageError(f"nginx's configuration {path} cannot be read: {e.strerror}.") from None
        except UnicodeDecodeError:
            raise UsageError(f"nginx's configuration {path} is no text.") from None


def _bytes_of(path: Path, most: int) -> bytes:
    """Nobody may stand at the other end of a pipe: to open it then would never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    parts, length = list[bytes](), 0
    try:
        while part := _part(descriptor, path):
            parts.append(part)
            length += len(part)
            if length > most:
                raise UsageError(f"nginx's configuration {path} has more than {_BYTES_MAX} bytes; is it one?")
    finally:
        os.close(descriptor)
    return b"".join(parts)


def _part(descriptor: int, path: Path) -> bytes:
    if not select.select([descriptor], [], [], _SILENT_S)[0]:
        raise UsageError(f"nginx's configuration {path} says nothing for {_SILENT_S:g} s; name a file.")
    return os.read(descriptor, 1 << 20)
