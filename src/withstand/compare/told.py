"""What a summary tells of a run: values without their sureness. Facts make better ones (``courses``)."""

from withstand.compare.estimate import Estimate, unsure
from withstand.interop.shape import ImportedRun
from withstand.interop.terms import TERMS
from withstand.metrics.agents import MEASURED, SUCCESS
from withstand.metrics.catalogue import AGENT
from withstand.metrics.summary import AgentSide, Distribution, StageSummary

DISTRIBUTIONS = ("ttft", "tpot", "itl", "e2el", "response")
RATES = ("request_throughput", "request_goodput", "output_throughput", "total_token_throughput", "success_rate")
_NOT_COMPUTED = "how sure it is is not computed"
_AGGREGATES = "aggregates only: the file keeps no single requests, so there is no interval"


def told_estimates(summary: StageSummary) -> dict[str, Estimate]:
    """By ``metric.statistic`` and by rate."""
    lack = _NOT_COMPUTED if summary.facts else _AGGREGATES
    found: dict[str, Estimate] = {}
    for name in DISTRIBUTIONS:
        told = getattr(summary, name)
        values = {"mean": told.mean, **told.percentiles}
        found |= {f"{name}.{key}": unsure(v, told.n or None, lack) for key, v in values.items() if v is not None}
    for name in RATES:
        value = getattr(summary, name)
        if value is not None:
            found[name] = unsure(value, summary.completed or None, lack)
    return found | (_of_agent(summary.agent, lack) if summary.agent else {})


def _of_agent(agent: AgentSide, lack: str) -> dict[str, Estimate]:
    found: dict[str, Estimate] = {}
    for name in MEASURED:
        told: Distribution = getattr(agent, name)
        values = {"mean": told.mean, **told.percentiles}
        found |= {f"{AGENT}{name}.{key}": unsure(v, told.n or None, lack) for key, v in values.items() if v is not None}
    if agent.success_rate is not None:
        found[f"{AGENT}{SUCCESS}"] = unsure(agent.success_rate, agent.tasks, lack)
    return found


def foreign_estimates(run: ImportedRun) -> dict[str, Estimate]:
    """What has a name of its own, because its definition is another than ours; compared with its like only."""
    found: dict[str, Estimate] = {}
    for name, told in run.stats.items():
        values = {"mean": told.mean, **told.percentiles} if name in TERMS else {}
        found |= {f"{name}.{key}": unsure(v, told.n, _AGGREGATES) for key, v in values.items() if v is not None}
    rates = {name: v for name, v in run.numbers.items() if name in TERMS and TERMS[name].unit == "tok/s"}
    return found | {name: unsure(value, None, _AGGREGATES) for name, value in rates.items()}
