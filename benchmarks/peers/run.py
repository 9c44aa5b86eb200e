"""Runs one client on one case, within a time limit, and says how that ended.

Knows processes; knows neither what is measured nor whether it is right. A client that crashes or hangs is a result.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
from benchmarks.peers.client import Case, Client, ReportError, Said

# No client may look for models elsewhere, colour its output, or see packages of ours.
_ENVIRONMENT: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "NO_COLOR": "1",
    "COLUMNS": "200",
}
_EXCEPTION: Final = re.compile(r"[\w.]*(Error|Exception)\b")
_INHERITED: Final = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "USER")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a client's run ended. ``exit_code`` None = it was ended after the time limit; ``said`` None = no report."""

    exit_code: int | None
    said: Said | None = None
    trouble: str | None = None
    """Why there is no report, or the last line of a client that did not end well."""


def run(client: Client, case: Case, *, timeout_s: float) -> Outcome:
    """Run the client and read what it reported."""
    with started(client, case) as process:
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return Outcome(exit_code=None, trouble=f"still running after {timeout_s:g} s")
    return outcome(client, case, process.returncode)


@contextmanager
def started(client: Client, case: Case, prefix: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[bytes]]:
    """The client's process, in a group of its own, which is gone when the block ends."""
    case.folder.mkdir(parents=True, exist_ok=True)
    command = client.command(case)
    for name, content in command.files.items():
        path = case.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ} | _ENVIRONMENT
    with (case.folder / "stdout").open("wb") as out, (case.folder / "stderr").open("wb") as err:
        process = subprocess.Popen(
            [*prefix, *command.argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=case.folder,
            env={**environment, **command.environment},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):  # the whole group has ended by itself
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def outcome(client: Client, case: Case, exit_code: int) -> Outcome:
    """What an ended client left behind."""
    try:
        said = client.parse(case.folder)
    except ReportError as e:
        return Outcome(exit_code=exit_code, trouble=_last_words(case.folder) or str(e))
    return Outcome(exit_code=exit_code, said=said, trouble=_last_words(case.folder) if exit_code else None)


def _last_words(folder: Path) -> str | None:
    """The last line that names an exception, else the last line."""
    texts = [(folder / name).read_text("utf-8", "replace").strip() for name in ("stdout", "stderr")]
    lines = [line.strip(" │╰─╯") for text in texts for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if _EXCEPTION.match(line)]
    found = errors or lines
    return found[-1] if found else None
