"""One trial with one client: played, judged, and kept as a file, so that a long table can be made piece by piece."""

import shutil
from pathlib import Path

import msgspec
from benchmarks.conformance.judge import Finding, Right, findings, gravest, right_of, says_something
from benchmarks.conformance.trials import TOKENS, Trial
from benchmarks.peers.client import Case, Client
from benchmarks.peers.run import Outcome, run

from withstand.testing import TruthServer

TRIAL_TIMEOUT_S = 150.0
_REQUEST_TIMEOUT_S = 4.0
_TRIES = 3


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    client: str
    version: str
    trial: str
    outcome: Outcome
    right: Right
    findings: tuple[Finding, ...] = ()

    @property
    def is_right(self) -> bool:
        """The client reported, and nothing that it said is wrong."""
        return self.outcome.said is not None and not self.findings

    def __str__(self) -> str:
        if self.outcome.said is None:
            return "hangs" if self.outcome.exit_code is None else "crashes"
        if self.findings:
            return "✗ " + "; ".join(map(str, gravest(self.findings)))
        return "✓" if says_something(self.outcome.said) else "–"  # noqa: RUF001  the dash of a table


def played(client: Client, trial: Trial, folder: Path, tokenizer: Path) -> Cell:
    """The trial, again while a number is wrong: always is the client's doing, now and then may be this machine's."""
    cells = []
    for _ in range(_TRIES):
        cells.append(_once(client, trial, folder, tokenizer))
        if not cells[-1].findings:
            break
    return min(cells, key=lambda cell: len(cell.findings))


def _once(client: Client, trial: Trial, folder: Path, tokenizer: Path) -> Cell:
    shutil.rmtree(folder, ignore_errors=True)
    with TruthServer(trial.schedule, behaviour=trial.behaviour) as server:
        case = Case(
            base_url=server.base_url,
            folder=folder,
            requests=trial.requests,
            output_tokens=TOKENS,
            timeout_s=_REQUEST_TIMEOUT_S,
            model=trial.model,
            tokenizer=tokenizer,
        )
        outcome = run(client, case, timeout_s=TRIAL_TIMEOUT_S)
        log = server.truth()
    right = right_of(log, trial.requests if client.keeps_count else None, tail=trial.tail)
    found = () if outcome.said is None else tuple(findings(outcome.said, right))
    return Cell(
        client=client.name, version=client.version, trial=trial.name, outcome=outcome, right=right, findings=found
    )


def kept(folder: Path, client: Client, trial: Trial) -> Cell | None:
    """The cell as it was kept, unless it is of another version of the client."""
    path = _path(folder, client, trial)
    if not path.exists():
        return None
    cell = msgspec.json.decode(path.read_bytes(), type=Cell)
    return cell if cell.version == client.version else None


def keep(folder: Path, client: Client, trial: Trial, cell: Cell) -> None:
    """Write it where ``kept`` finds it."""
    path = _path(folder, client, trial)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(cell)))


def _path(folder: Path, client: Client, trial: Trial) -> Path:
    return folder / client.name / f"{trial.name.replace(' ', '-')}.json"
