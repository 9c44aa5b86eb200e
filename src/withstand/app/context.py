"""What must be known of a stage beside its records, from the manifest of its run."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from withstand.app.salt import is_repeated
from withstand.control.probe import Standing
from withstand.metrics.absences import Absence, absences
from withstand.metrics.context import StageContext
from withstand.metrics.server import Watched
from withstand.record import Outage, Sample
from withstand.runs import RunFolder, RunState, StageEntry, TargetsFolder
from withstand.sim import is_simulated

_AROUND_NS = 10_000_000_000


def context_of(folder: RunFolder, index: int, samples: Sequence[Sample] = ()) -> StageContext:
    """Of the stage at a place of the list, when the records have been read. ``samples`` are the run's."""
    manifest = folder.manifest
    entry = manifest.stages[index]
    tokenizer = entry.texts_by or manifest.tokenizer
    beside = _is_loopback(manifest.target)
    warmed_up = any(e.stage.warmup and e.state is RunState.DONE for e in manifest.stages)
    return StageContext(
        stage=entry.stage,
        goodput=manifest.plan.goodput,
        health=entry.health,
        stopped_early=entry.state is not RunState.DONE,
        ended_by=entry.ended_by,
        cut_short=entry.cut_short,
        cut_at_once=_cut_at_once(entry),
        warmed_up=warmed_up,
        tokenizer=tokenizer.name if tokenizer else None,
        tokenizer_exact=tokenizer.exact if tokenizer else True,
        identical_prompts=entry.identical_prompts,
        repeatable=is_repeated(manifest.plan) or TargetsFolder.is_one(folder.path.resolve().parent),
        cores=int(cores) if (cores := manifest.machine.get("cores", "")).isdecimal() else None,
        beside_server=beside,
        absences=_absences(entry, manifest.outages),
        damaged_lines=folder.damaged_lines,
        fixed_lengths=entry.fixed_lengths,
        cycles=manifest.plan.cycles,
        simulated=is_simulated(manifest.model),
        watched=_watched(entry, samples, beside_server=beside),
    )


def _cut_at_once(entry: StageEntry) -> bool:
    """Whether what ran was of no use: a load that is not known to hold, or one that was too much."""
    if entry.ended_by is None:
        return False
    return entry.look.standing is not Standing.HOLDS if entry.look else entry.too_much


def _watched(entry: StageEntry, samples: Sequence[Sample], *, beside_server: bool) -> Watched | None:
    """Those around the stage, where it is known when that was."""
    if entry.started_ns is None or entry.ended_ns is None:
        return None
    low_ns, high_ns = entry.started_ns - _AROUND_NS, entry.ended_ns + _AROUND_NS
    around = tuple(sample for sample in samples if low_ns <= sample.at_ns <= high_ns)
    return Watched(around, entry.started_ns, entry.ended_ns, beside_server) if around else None


def _absences(entry: StageEntry, outages: Sequence[Outage]) -> tuple[Absence, ...]:
    if entry.started_ns is None or entry.ended_ns is None or entry.ended_ns <= entry.started_ns:
        return ()
    return absences(outages, entry.started_ns, entry.ended_ns)


def _is_loopback(target: str | None) -> bool:
    host = urlsplit(target or "").hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")
