"""How long until `withstand ui` shows N run folders: seconds from the command on, in a cold process.

    python -m benchmarks.ui.many_runs [N] [ROUNDS]

One real run of twelve stages is measured, and copied N times. Before each round the folders are dropped from the
system's file cache as far as a user may. These instants are told: the address is printed; the whole list has been
answered; and, where there is a Chromium that has been started before, the newest runs stand on the page, and all do.
The CPU time of the process is told beside: on a machine that others use, the wall's seconds are theirs too.
"""

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from withstand.testing import Schedule, TruthServer

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
from browser import browser
from pages import CHROMIUM

WITHSTAND = (sys.executable, "-m", "withstand")
RATES = ",".join(str(rate) for rate in range(20, 260, 20))
LENGTHS = ("--set", "workload.options.input_len=8", "--set", "workload.options.output_len=5")


def measured(folder: Path) -> Path:
    with TruthServer(Schedule(ttft_ms=5, itl_ms=1, tokens=5)) as server:
        command = [*WITHSTAND, "run", "--base-url", server.base_url, "--request-rate", RATES, "--num-prompts", "10"]
        subprocess.run([*command, *LENGTHS, "--quiet", "--output-dir", str(folder)], check=False, capture_output=True)
    return folder


def copies(run: Path, shelf: Path, n: int) -> int:
    """Bytes of all that has to be read."""
    manifest = json.loads((run / "run.json").read_text())
    for number in range(n):
        copy = shelf / f"series-{number // 50}" / f"run-{number}"
        shutil.copytree(run, copy)
        created = f"2026-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}T00:00:00Z"
        (copy / "run.json").write_text(json.dumps(manifest | {"created_utc": created}))
    return sum(path.stat().st_size for name in ("run.json", "summary.json") for path in shelf.rglob(name))


def forget(shelf: Path) -> None:
    """Have the system read the files from the disk again."""
    for path in shelf.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def listed(url: str, n: int) -> None:
    """Until the answer has them all."""
    while True:
        with urllib.request.urlopen(f"{url}api/runs") as answer:  # our own server, on loopback
            listing = json.load(answer)
        if not listing["unread"]:
            assert len(listing["entries"]) == n, len(listing["entries"])
            return


def once(shelf: Path, look: Callable[[str], None]) -> tuple[float, float, float]:
    """Seconds until the address is there, and until ``look`` has seen all; and of CPU until then."""
    forget(shelf)
    began_ns = time.monotonic_ns()
    with subprocess.Popen([*WITHSTAND, "ui", str(shelf), "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = process.stdout.readline().split()[0]
        ready_ns = time.monotonic_ns()
        look(url)
        seen_ns = time.monotonic_ns()
        cpu_s = cpu_of(process.pid)
        process.terminate()
    return (ready_ns - began_ns) / 1e9, (seen_ns - began_ns) / 1e9, cpu_s


def cpu_of(pid: int) -> float:
    """User and system time so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def told(what: str, found: list[tuple[float, float, float]]) -> None:
    ready, seen, cpu = (statistics.median(column) for column in zip(*found, strict=True))
    least = min(seen for _, seen, _ in found)
    print(f"{what:18} address {ready:.2f} s, all {seen:.2f} s (least {least:.2f} s), CPU {cpu:.2f} s")


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        size = copies(measured(folder / "one"), folder / "shelf", n)
        print(f"{n} run folders, {size / 1e6:.1f} MB of run.json and summary.json; median of {rounds}")
        told("the list answered", [once(folder / "shelf", lambda url: listed(url, n)) for _ in range(rounds)])
        if CHROMIUM:
            tab = stack.enter_context(browser(folder))

            def drawn(url: str, least: int) -> None:
                tab.open(url)
                tab.until(f"document.querySelectorAll('#rows tr').length >= {least}")

            told("the newest drawn", [once(folder / "shelf", lambda url: drawn(url, 1)) for _ in range(rounds)])
            told("all drawn", [once(folder / "shelf", lambda url: drawn(url, n)) for _ in range(rounds)])


if __name__ == "__main__":
    main()
