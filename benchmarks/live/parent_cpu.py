"""What the live panel costs the process that drives a run: CPU of a core, beside plain lines, turn and turn about.

    python -m benchmarks.live.parent_cpu [TOKENS_PER_S …]

A truth server on a core of its own, answers of 256 tokens every 20 ms, a pseudo-terminal of 120 x 40. The workers' CPU
stands beside it: that must not change. Linux only.
"""

import fcntl
import json
import os
import pty
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

from benchmarks.load.instrument import Cores, truth_server

TOKENS, ITL_MS, SECONDS, ROUNDS = 256, 20.0, 12, 2
HERTZ = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / HERTZ


def workers_of(pid: int) -> list[int]:
    children = [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [c for c in children if b"withstand.load.worker" in Path(f"/proc/{c}/cmdline").read_bytes()]


def measure(base_url: str, rate: float, *options: str) -> dict[str, float]:
    """Over the middle of the stage."""
    with tempfile.TemporaryDirectory() as room:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        load = ("--request-rate", f"{rate:g}", "--duration", str(SECONDS), "--num-warmups", "0", "--output-dir", "r")
        command = [sys.executable, "-m", "withstand", "run", "--base-url", base_url, *load, *options]
        with subprocess.Popen(command, cwd=room, stdout=subprocess.DEVNULL, stderr=slave) as process:
            os.close(slave)
            threading.Thread(target=drain, args=(master,), daemon=True).start()
            while not is_running(Path(room) / "r" / "run.json") or not workers_of(process.pid):
                time.sleep(0.05)
            time.sleep(6)
            workers = workers_of(process.pid)
            before, workers_before, began = cpu_s(process.pid), sum(map(cpu_s, workers)), time.monotonic()
            time.sleep(SECONDS - 7)
            took = time.monotonic() - began
            parent, theirs = cpu_s(process.pid) - before, sum(map(cpu_s, workers)) - workers_before
            process.wait()
        stage = json.loads((Path(room) / "r" / "summary.json").read_text())["stages"][0]
    return {"parent": parent / took, "workers": theirs / took, "tokens_per_s": stage["output_throughput"]}


def is_running(manifest: Path) -> bool:
    return manifest.exists() and any(s["state"] == "running" for s in json.loads(manifest.read_text())["stages"])


def drain(master: int) -> None:
    try:
        while os.read(master, 65536):
            pass
    except OSError:
        return


def main() -> None:
    for tokens_per_s in [float(a) for a in sys.argv[1:]] or [10_000.0, 50_000.0]:
        with truth_server(Cores.of_this_machine().server, itl_ms=ITL_MS) as server:
            length = ("--set", f"workload.options.output_len={TOKENS}")
            found: dict[str, list[dict[str, float]]] = {"panel": [], "plain": []}
            for _ in range(ROUNDS):
                found["plain"].append(measure(server.base_url, tokens_per_s / TOKENS, "--plain", *length))
                found["panel"].append(measure(server.base_url, tokens_per_s / TOKENS, *length))
        print(f"{tokens_per_s:,.0f} tokens/s asked, {server.name}")
        for name, runs in found.items():
            parent, workers, peak = (
                statistics.median(r[key] for r in runs) for key in ("parent", "workers", "tokens_per_s")
            )
            print(f"  {name}: parent {parent:6.1%} of a core, workers {workers:6.1%}, {peak:,.0f} tokens/s")


if __name__ == "__main__":
    main()
