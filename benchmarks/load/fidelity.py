"""Our numbers beside the truth, at rising token rates, on whatever cores there are.

    python benchmarks/load/fidelity.py [TOKENS_PER_SECOND …]

Each cell: TTFT 50 ms, ITL 20 ms, 128 tokens an answer, about six seconds of constant arrivals against the truth server
in a process of its own. On two cores the server competes with the client, so the server's own lateness is printed too.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from withstand.runs import RunFolder
from withstand.testing import Schedule, TruthServer

TOKENS = 128
SECONDS = 6


def cell(tokens_per_s: int, folder: Path) -> str:
    rate = tokens_per_s / TOKENS
    with TruthServer(Schedule(ttft_ms=50, itl_ms=20, tokens=TOKENS)) as server:
        command = [sys.executable, "-m", "withstand", "run", "--base-url", server.base_url, "--quiet", "--workers", "1"]
        command += ["--num-prompts", str(max(20, round(rate * SECONDS))), "--output-dir", str(folder)]
        command += ["--input-len", "32", "--output-len", str(TOKENS), "--tokenizer", "tiktoken"]
        command += ["--set", f'stages=[{{"arrivals":{{"kind":"constant","rate":{rate}}}}}]']
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        truth = [s for s in server.truth() if s.tokens == TOKENS][1:]
    run = RunFolder.open(folder)
    (stage,) = [i for i, e in enumerate(run.manifest.stages) if not e.stage.warmup]
    records = list(run.records(stage))
    health = run.manifest.stages[stage].health[0]
    ttft = sorted((r.chunk_ns[0] - r.sent_ns) / 1e6 for r in records if r.chunk_ns and r.sent_ns)
    itl = sorted((b - a) / 1e6 for r in records for a, b in zip(r.chunk_ns, r.chunk_ns[1:], strict=False))
    true_ttft = sorted(s.ttft_ms or 0 for s in truth)
    true_itl = sorted((b - a) / 1e6 for s in truth for a, b in zip(s.token_ns, s.token_ns[1:], strict=False))
    tokens = sum(len(r.chunk_ns) for r in records)
    server_late_ms = max(s.late_ns_max for s in truth) / 1e6
    return (
        f"{tokens_per_s:7,} tok/s  TTFT error mean {statistics.fmean(ttft) - statistics.fmean(true_ttft):+.3f} "
        f"p99 {at(ttft, 0.99) - at(true_ttft, 0.99):+.3f} ms   ITL error mean "
        f"{statistics.fmean(itl) - statistics.fmean(true_itl):+.4f} p99 {at(itl, 0.99) - at(true_itl, 0.99):+.3f} ms   "
        f"{health.cpu_ns / 1e3 / tokens:.1f} µs a token, {health.cpu_ns / health.wall_ns:.0%} of a core, "
        f"{(health.rss_bytes_max or 0) / 2**20:.0f} MB, {health.shared_reads} shared reads; "
        f"server late by {server_late_ms:.1f} ms at most"
    )


def at(ordered: list[float], share: float) -> float:
    return ordered[round(share * (len(ordered) - 1))]


def main() -> None:
    rates = [int(word) for word in sys.argv[1:]] or [1_000, 5_000, 10_000, 20_000]
    with tempfile.TemporaryDirectory() as name:
        for rate in rates:
            print(cell(rate, Path(name) / str(rate)), flush=True)


if __name__ == "__main__":
    main()
