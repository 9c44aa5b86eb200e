"""What must be known of a stage beside its records, from the manifest of its run."""

from urllib.parse import urlsplit

from withstand.metrics.context import StageContext
from withstand.runs import Manifest, RunState


def context_of(manifest: Manifest, index: int) -> StageContext:
    """Of the stage at a place of the list."""
    entry = manifest.stages[index]
    tokenizer = entry.texts_by or manifest.tokenizer
    warmed_up = any(e.stage.warmup and e.state is RunState.DONE for e in manifest.stages)
    return StageContext(
        stage=entry.stage,
        goodput=manifest.plan.goodput,
        health=entry.health,
        stopped_early=entry.state is not RunState.DONE,
        ended_by=entry.ended_by,
        warmed_up=warmed_up,
        tokenizer=tokenizer.name if tokenizer else None,
        tokenizer_exact=tokenizer.exact if tokenizer else True,
        identical_prompts=entry.identical_prompts,
        cores=int(cores) if (cores := manifest.machine.get("cores", "")).isdecimal() else None,
        beside_server=_is_loopback(manifest.target),
        fixed_lengths=entry.fixed_lengths,
    )


def _is_loopback(target: str | None) -> bool:
    host = urlsplit(target or "").hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")
