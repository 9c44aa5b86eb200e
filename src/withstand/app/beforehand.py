"""What is checked and said of a plan before anything is sent: this machine's limits, workers, time, price."""

from collections.abc import Sequence

from withstand.app.calibration.foresight import Foresight, foresee
from withstand.app.estimate import estimated, in_words, search_in_words
from withstand.app.fitting import tokens_of
from withstand.app.screen import Screen
from withstand.app.stages import connections_foreseen, stripes_of
from withstand.load.fleets import is_ray
from withstand.load.limits import ensure_descriptors, ensure_ports
from withstand.report.numbers import counted
from withstand.runs import allowed_cores
from withstand.spec import Plan, Stage


def foreseen(plan: Plan, stages: tuple[Stage, ...], screen: Screen) -> Foresight:
    """This machine's limits against the load asked: what cannot be is refused, what may not be is told.

    The nodes of a cluster look at their own. A search that goes on may not know its next stage yet.
    """
    if is_ray(plan.fleet) or not stages:
        return Foresight()
    foresight = foresee(plan, stages, screen)
    cores = allowed_cores()
    shares = {s.name: stripes_of(plan, s, cores, needed=foresight.workers(s)).workers for s in stages}
    for stage in stages:
        connections, workers = connections_foreseen(plan, stage), shares[stage.name]
        ensure_descriptors(-(-connections // workers) if connections else None)
        ensure_ports(connections, over_tcp=not (plan.target.base_url or "").startswith(("unix:", "http+unix:")))
    heaviest = max(stages, key=lambda stage: foresight.workers(stage) or 0)
    if advice := foresight.advice(heaviest, shares[heaviest.name], cores):
        screen.message(advice)
    return foresight


def say_how_long_all(plan: Plan, stages: Sequence[Stage], runs: int, what: str, screen: Screen) -> None:
    """The same for several runs, of as many targets or blocks."""
    screen.message(f"For {runs} {what}: {in_words(estimated(plan, stages).times(runs), plan.asked_price.hour())}")


def say_how_long(plan: Plan, stages: Sequence[Stage], screen: Screen, known: Sequence[Stage] = ()) -> None:
    """How many stages, how long, at what price; nothing of a single one without an end. ``known``: the run's so far."""
    if plan.find_limit:
        screen.message(search_in_words(plan.find_limit, begins=not known))
        return
    estimate = estimated(plan, stages, known)
    measured = [stage for stage in stages if not stage.warmup]
    if known or len(measured) > 1 or estimate.known_s:
        whole = estimate.stages + sum(not stage.warmup for stage in known) - len(measured)
        what = f"Left of {counted(whole, 'stage')}" if known else "Planned"
        screen.message(f"{what}: {in_words(estimate, plan.asked_price.hour())}")
    if not estimate.known_s and plan.target.base_url is None and not plan.target.serve:
        screen.message(_for_small_model(measured))


def _for_small_model(stages: Sequence[Stage]) -> str:
    """The embedded engine's, whose speed nobody knows beforehand."""
    requests = counted(sum(stage.num_prompts or 0 for stage in stages), "request")
    longest = max((tokens_of(stage) or 0 for stage in stages), default=0)
    each = f" of at most {longest:,} tokens (prompt and answer)" if longest else ""
    return (
        f"A small model on this machine's own cores is to answer {requests}{each}, which may take minutes. "
        "A smaller --num-prompts, --input-len or --output-len takes less; --base-url asks another endpoint."
    )
