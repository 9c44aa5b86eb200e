"""Which numbers are compared, what they are called, and which side is ahead. It knows no sureness."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from withstand.interop.terms import known, unit_of
from withstand.metrics.catalogue import CATALOGUE

_SHORT = {
    "ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL", "response": "response time",
    "request_throughput": "Request throughput", "request_goodput": "Goodput",
    "output_throughput": "Output throughput", "total_token_throughput": "Total throughput",
    "success_rate": "Success rate",
    "agent_success_rate": "Tasks solved", "agent_steps": "steps a task", "agent_model": "model time a task",
    "agent_tools": "tool time a task", "agent_own": "agent's own time a task",
    "agent_final_ttft": "TTFT of the answer", "agent_tokens": "tokens a task",
}  # fmt: skip
_STATISTIC = re.compile(r"^(?P<metric>\w+)\.(?P<which>mean|p[\d.]+)$")
_HIGHER = re.compile(r"throughput|speed|accept_length|goodput|success")
USUAL = (
    "ttft.mean", "ttft.p50", "ttft.p90", "ttft.p99",
    "tpot.mean", "tpot.p99",
    "itl.mean", "itl.p99",
    "e2el.mean", "e2el.p50", "e2el.p99",
    "response.p99",
    "request_throughput", "request_goodput", "output_throughput", "success_rate",
    "agent_success_rate", "agent_steps.mean", "agent_model.mean", "agent_tools.mean", "agent_final_ttft.p50",
    "agent_tokens.mean",
)  # fmt: skip
"""What is compared if nothing is chosen: few, since each comparison costs the others some of their sureness."""


class Asked(msgspec.Struct, frozen=True):
    """One number to compare."""

    key: str

    @property
    def metric(self) -> str:
        """Without its statistic."""
        found = _STATISTIC.match(self.key)
        return found["metric"] if found else self.key

    @property
    def title(self) -> str:
        """``Mean TTFT``, ``p99 ITL``, ``Output throughput``."""
        found = _STATISTIC.match(self.key)
        name = _SHORT.get(self.metric, self.metric.replace("_", " "))
        if not found:
            return f"{name[0].upper()}{name[1:]}"
        which = {"mean": "Mean", "p50": "Median"}.get(found["which"], found["which"])
        return f"{which} {name}"

    @property
    def unit(self) -> str:
        """As defined."""
        return unit_of(self.metric)

    @property
    def lower_is_better(self) -> bool:
        """Times are better low, everything else high."""
        if self.metric in CATALOGUE:
            return CATALOGUE[self.metric].better == "lower"
        return not _HIGHER.search(self.metric)


def chosen(available: Iterable[str], wanted: Sequence[str]) -> list[Asked]:
    """The usual ones and what has a name of its own; with ``wanted``, these metrics with all their statistics."""
    known_keys = list(dict.fromkeys(key for key in available if known(Asked(key).metric)))
    if wanted:
        return [Asked(k) for k in known_keys if k in wanted or Asked(k).metric in wanted]
    usual = [Asked(k) for k in USUAL if k in known_keys]
    foreign = [Asked(k) for k in known_keys if Asked(k).metric not in CATALOGUE and _is_central(k)]
    return usual + foreign


def untold(available: Iterable[str], wanted: Sequence[str]) -> str | None:
    """In one sentence, what was asked for by a name that nothing has; None = there is all of it."""
    asked = [Asked(key) for key in available if known(Asked(key).metric)]
    names = dict.fromkeys(name for one in asked for name in (one.metric, one.key))
    lost = [name for name in wanted if name not in names]
    told = ", ".join(dict.fromkeys(one.metric for one in asked))
    return f"No side tells of {', '.join(lost)}; there are {told}." if lost else None


def _is_central(key: str) -> bool:
    found = _STATISTIC.match(key)
    return not found or found["which"] in {"mean", "p50"}


def ahead(values: Sequence[float | None], *, lower_is_better: bool) -> tuple[int | None, float | None]:
    """The side with the best value, and ``Faster by (%)``: how far it is from the worst, relative to the larger."""
    known_values = [value for value in values if value is not None]
    if len(known_values) < len(values) or len(values) < 2 or min(known_values) == max(known_values):
        return None, None
    best, worst = min(known_values), max(known_values)
    if worst <= 0:
        return None, None
    place = list(values).index(best if lower_is_better else worst)
    return place, (worst - best) / worst * 100
