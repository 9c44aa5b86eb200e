"""Benchmark clients against a server of known answers: which behaviours each understands, which it takes amiss.

    python -m benchmarks.conformance.run [--client NAME]… [--only TRIAL]… [--jobs N] [--write docs/conformance.md]

Every cell is kept in a folder as soon as it is known; what is there is not played again, unless ``--again``. Ends with
the table in Markdown, of what the folder holds. Clients come from ``python -m benchmarks.peers.install``.
"""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.conformance.cell import Cell, keep, kept, played
from benchmarks.conformance.table import put_into, table
from benchmarks.conformance.trials import Trial, trials
from benchmarks.peers.client import Client
from benchmarks.peers.clients import chosen, installed
from benchmarks.peers.home import home
from benchmarks.peers.tokenizer import write_tokenizer


def main() -> None:
    """Play what is missing, and print the table."""
    options = _options()
    folder = Path(options.folder or home() / "conformance")
    clients = installed(chosen(options.client))
    wanted = [trial for trial in trials() if not options.only or trial.name in options.only]
    tokenizer = write_tokenizer(home())
    pairs = [(client, trial) for client in clients for trial in wanted]
    missing = [pair for pair in pairs if options.again or kept(folder, *pair) is None]
    pool = ThreadPoolExecutor(options.jobs)
    try:
        for playing in [pool.submit(_play, client, trial, folder, tokenizer) for client, trial in missing]:
            playing.result()
    finally:
        pool.shutdown(cancel_futures=True)
    cells = {(trial.name, client.name): cell for client, trial in pairs if (cell := kept(folder, client, trial))}
    text = table(wanted, clients, cells)
    if options.write:
        options.write.write_text(put_into(options.write.read_text("utf-8"), text), "utf-8")
    print(text)


def _play(client: Client, trial: Trial, folder: Path, tokenizer: Path) -> Cell:
    with tempfile.TemporaryDirectory(prefix=f"{client.name}-") as scratch:
        cell = played(client, trial, Path(scratch) / "case", tokenizer)
    keep(folder, client, trial, cell)
    trouble = f"  {cell.outcome.trouble}" if cell.outcome.said is None else ""
    print(f"{client.name:16}{trial.name:26}{cell}{trouble}", file=sys.stderr, flush=True)
    return cell


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--client", action="append", default=[], metavar="NAME", help="Only this one; again for more.")
    parser.add_argument("--only", action="append", default=[], metavar="TRIAL", help="Only this row; again for more.")
    parser.add_argument("--again", action="store_true", help="Play also what the folder holds.")
    parser.add_argument("--folder", metavar="DIR", help="Where cells are kept; beside the clients by default.")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="Cells at the same time; 1 by default.")
    parser.add_argument("--write", type=Path, metavar="FILE", help="Put the table between the marks of this file.")
    return parser.parse_args()


if __name__ == "__main__":
    main()
