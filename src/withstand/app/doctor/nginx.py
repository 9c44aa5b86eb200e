"""nginx's configuration, as files: read with all that they include, and judged."""

from pathlib import Path

from withstand.doctor.finding import Finding, Verdict
from withstand.doctor.nginx_lint import linted
from withstand.doctor.nginx_syntax import parsed
from withstand.errors import UsageError

_BYTES_MAX = 16 << 20


def lint_nginx(path: Path) -> list[Finding]:
    """What the file would do to streams.

    Raises:
        UsageError: it cannot be read, or is none.
    """
    return linted(parsed(path.name, _text(path), lambda pattern: _included(path.parent, pattern)))


def exit_code_of(findings: list[Finding]) -> int:
    """0: nothing is wrong; 1: something is; 3: nothing was there to judge."""
    verdicts = {finding.verdict for finding in findings}
    if Verdict.WRONG in verdicts:
        return 1
    return 3 if verdicts == {Verdict.NOT_TRIED} else 0


def _included(folder: Path, pattern: str) -> list[tuple[str, str]]:
    """Those that are there, as nginx takes them: below the main file's folder. A pattern may fit none."""
    at = Path(pattern)
    root, rest = (Path(at.anchor), at.relative_to(at.anchor)) if at.is_absolute() else (folder, at)
    if any(mark in pattern for mark in "*?["):
        return [(file.name, _text(file)) for file in sorted(root.glob(str(rest)))]
    return [(at.name, _text(root / rest))]


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_BYTES_MAX + 1)
        if len(data) > _BYTES_MAX:
            raise UsageError(f"nginx's configuration {path} has more than {_BYTES_MAX} bytes; is it one?")
        return data.decode("utf-8")
    except OSError as e:
        raise UsageError(f"nginx's configuration {path} cannot be read: {e.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"nginx's configuration {path} is no text.") from None
