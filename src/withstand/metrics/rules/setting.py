"""Doubts about the setting: caches, warm-up, and how many answers there are."""

from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.quantiles import samples_needed
from withstand.metrics.rounding import counted, percent
from withstand.metrics.rules.case import Case
from withstand.metrics.summary import PERCENTILES

_CACHED_SHARE = 0.2
_IDENTICAL_SHARE = 0.05


def prefix_cache(case: Case) -> Doubt | None:
    """The server did not compute all of the prefill. Its own word counts more than our guess."""
    cached, prompts = case.evidence.cached_tokens, case.evidence.prompt_tokens
    if prompts:
        return _cache_hit(cached, prompts, case) if cached > _CACHED_SHARE * prompts else None
    looked_up = _by_metrics(case)
    if looked_up:
        hits, queries = looked_up
        return _cache_hit(hits, queries, case) if hits > _CACHED_SHARE * queries else None
    identical, asked = case.context.identical_prompts, case.summary.attempted
    if identical <= _IDENTICAL_SHARE * asked:
        return None
    return Doubt(
        DoubtKind.PREFIX_CACHE,
        f"{identical:,} of {counted(asked, 'request')} ({percent(identical, asked)}) repeat a prompt that was sent "
        "before: a prefix cache, if there is one, answers them without prefill; TTFT and throughput then look better "
        "than they are.",
        "Use more distinct prompts or another seed, or turn the cache off.",
    )


def _by_metrics(case: Case) -> tuple[int, int] | None:
    """(Found, looked up) by the server's metrics; later turns repeat their history by nature, so they tell nothing."""
    server = case.summary.server
    if server is None or not server.prefix_queries or case.evidence.first_turns < case.summary.attempted:
        return None
    return server.prefix_hits or 0, server.prefix_queries


def _cache_hit(cached: int, prompts: int, case: Case) -> Doubt:
    before = " Other runs send the same prompts, and may have left them there." if case.context.repeatable else ""
    return Doubt(
        DoubtKind.PREFIX_CACHE,
        f"{cached:,} of {prompts:,} prompt tokens ({percent(cached, prompts)}) came from the server's prefix cache: "
        f"TTFT and throughput hold for prompts that share as much.{before}",
        "Use distinct prompts (without --seed and --same-prompts they are each run's own), or turn the cache off, "
        "unless the sharing is what you measure.",
    )


def warmup_missing(case: Case) -> Doubt | None:
    """The first requests paid for what later ones found ready."""
    if case.context.warmed_up:
        return None
    return Doubt(
        DoubtKind.WARMUP_MISSING,
        "Nothing was sent before the first stage: the first answers paid for compilation, caches and connections.",
        "Send some warm-up requests (num_warmups).",
    )


def simulated(case: Case) -> Doubt | None:
    """No model has computed anything."""
    if not case.context.simulated:
        return None
    return Doubt(
        DoubtKind.SIMULATED,
        "The engine is simulated: its times are those of a queueing model, and its answers are made-up words.",
        "Quote these numbers of the model alone; measure the engine itself before anything is said of it.",
    )


def too_few_samples(case: Case) -> Doubt | None:
    """One doubt for all percentiles that so few answers cannot bound."""
    n = case.summary.completed
    open_ended = [percent_ for percent_ in PERCENTILES if samples_needed(percent_) > n]
    if not n or not open_ended:
        return None
    names = ", ".join(f"p{p} (needs {samples_needed(p)})" for p in open_ended)
    more = f"Send at least {samples_needed(max(open_ended)):,} requests"
    if case.context.cycles > 1:
        more = (
            f"Raise `cycles` above {case.context.cycles} and quote what all of them come to (the line on cold starts)"
        )
    return Doubt(
        DoubtKind.TOO_FEW_SAMPLES,
        f"{counted(n, 'answer')} cannot bound {names}: the 95 % interval has an open end there.",
        f"{more}, or do not quote these percentiles.",
    )


RULES = (prefix_cache, warmup_missing, simulated, too_few_samples)
