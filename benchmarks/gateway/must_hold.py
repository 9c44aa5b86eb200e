"""What must hold of the gateway, beside others, found out on this machine.

    python -m benchmarks.gateway.must_hold [PROBE …] [--gateway NAME]… [--rounds N] [--seconds S] [--soak S] [--scale X]

A gateway is alone on one core; the engine and the client share another. README.md tells what the probes are.
"""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.gateway.faults import FAULTS
from benchmarks.gateway.flow import FLOW
from benchmarks.gateway.gateways import DIRECT, GATEWAYS, ON_REQUEST, present
from benchmarks.gateway.household import HOUSEHOLD
from benchmarks.gateway.probe import Bench, Figures, Probe, middle, side_by_side
from benchmarks.load.claims import Cell, all_hold, as_table
from benchmarks.load.instrument import AbsentError, Cores, kept_awake

PROBES = {**FLOW, **FAULTS, **HOUSEHOLD}


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended, too
    asked = _arguments()
    cores = Cores.of_this_machine()
    os.sched_setaffinity(0, os.sched_getaffinity(0) - {cores.client})  # this process must not disturb the gateway
    with kept_awake(cores, wanted=asked.awake):
        held = [_probed(name, asked, cores) for name in asked.probes or PROBES]
    return 0 if all(held) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("probes", nargs="*", metavar="PROBE", help=f"any of: {', '.join(PROBES)}; else all")
    names = [DIRECT, *GATEWAYS]
    told = f"repeatable; else all that are installed, but {', '.join(sorted(ON_REQUEST))}"
    parser.add_argument("--gateway", action="append", choices=names, help=told)
    parser.add_argument("--rounds", type=int, default=1, help="how often each probe is made; medians are judged")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each load is measured")
    parser.add_argument("--soak", type=float, default=1800.0, help="how long the probe `soak` takes, in seconds")
    parser.add_argument("--scale", type=float, default=1.0, help="of the 20,000 requests of the probe `leak`")
    parser.add_argument("--awake", action="store_true", help="no core ever sleeps, as on a machine of one's own")
    asked = parser.parse_args()
    if unknown := set(asked.probes) - set(PROBES):
        parser.error(f"no such probe: {', '.join(sorted(unknown))}")
    asked.gateway = asked.gateway or [name for name in names if name not in ON_REQUEST and present(name)]
    return asked


def _probed(name: str, asked: argparse.Namespace, cores: Cores) -> bool:
    """Made with each gateway, turn and turn about, and printed; whether all holds."""
    probe = PROBES[name]
    rounds = [dict(_round(probe, asked, cores)) for _ in range(asked.rounds)]
    table = {gateway: middle([found[gateway] for found in rounds]) for gateway in rounds[0]}
    cells = [Cell(probe.title, list(probe.judge(found)), []) for found in rounds]
    print(as_table(name, cells), side_by_side(table), sep="\n", end="\n\n", flush=True)
    return all_hold(cells)


def _round(probe: Probe, asked: argparse.Namespace, cores: Cores) -> Iterator[tuple[str, Figures]]:
    for gateway in asked.gateway:
        if probe.gateways and gateway not in probe.gateways:
            continue
        with tempfile.TemporaryDirectory(prefix=f"gateway-{gateway}-") as folder:
            bench = Bench(cores, Path(folder), asked.seconds, asked.soak, asked.scale)
            try:
                yield gateway, probe.measure(bench, gateway)
            except AbsentError as e:
                print(e, file=sys.stderr)
                yield gateway, {}


if __name__ == "__main__":
    sys.exit(main())
