"""What a run's manifest has to tell beside its numbers: services that were away and raise no doubt, and notes."""

from withstand.record import Outage
from withstand.report.numbers import seconds
from withstand.runs import Manifest, StageEntry


def notes_of(manifest: Manifest) -> tuple[str, ...]:
    """Each is what a line of a report holds: without a full stop."""
    stages = [entry for entry in manifest.stages if not entry.stage.warmup]
    silent = [one for one in manifest.outages if not any(_raises_doubt(one, stage) for stage in stages)]
    return tuple(note.rstrip(".") for note in (*map(_told, silent), *manifest.notes))


def _raises_doubt(outage: Outage, entry: StageEntry) -> bool:
    if not outage.asked or entry.started_ns is None or entry.ended_ns is None:
        return False
    return outage.began_ns < entry.ended_ns and (outage.back_ns is None or outage.back_ns > entry.started_ns)


def _told(one: Outage) -> str:
    began = f"from {seconds(one.began_ns / 1e9)} of the run on" if one.began_ns > 0 else "when the run began"
    back = f", for {seconds((one.back_ns - one.began_ns) / 1e9)}" if one.back_ns is not None else ""
    return f"stack: {one.service} was away {began}{back}: it {one.reason}"
