"""What the agent counts of its own work, and its text for Prometheus. Labels are names from the configuration."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator

from withstand.agent.step import Step

_PREFIX = "withstand_agent_"
_OUTCOMES = ("ok", "limit", "refused", "model_failed", "client_left", "failed")
_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Histogram:
    """Counts up to each bound, and above."""

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        """One observation."""
        self.counts[bisect_left(_BOUNDS_S, seconds)] += 1
        self.sum_s += seconds


class Counts:
    """Since the start of the process."""

    def __init__(self, tools: Iterable[str]) -> None:
        self._tools = frozenset(tools)
        self.in_flight = 0
        self.requests = Counter(dict.fromkeys(_OUTCOMES, 0))
        """By outcome. Each is there from the start: of a series that begins at 1, a rate does not see the first."""
        self.tokens: Counter[str] = Counter()
        self.tools: Counter[tuple[str, str]] = Counter()
        self.task, self.model, self.tool, self.steps = Histogram(), Histogram(), Histogram(), Counter[str]()

    def step(self, step: Step) -> None:
        """One that is over."""
        self.steps[step.kind] += 1
        if step.kind == "model":
            self.model.add(step.ms / 1e3)
        elif step.kind == "tool":
            self.tool.add(step.ms / 1e3)
            self.tools[step.name if step.name in self._tools else "", "ok" if step.ok else "error"] += 1

    def exposition(self) -> str:
        """Everything, for one scrape."""
        return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        yield from _head("requests_total", "counter", "Requests that are over.")
        yield from (f'{_PREFIX}requests_total{{outcome="{k}"}} {n}' for k, n in self.requests.items())
        yield from _head("requests_in_flight", "gauge", "Tasks under way.")
        yield f"{_PREFIX}requests_in_flight {self.in_flight}"
        yield from _head("steps_total", "counter", "Steps that are over.")
        yield from (f'{_PREFIX}steps_total{{kind="{k}"}} {n}' for k, n in self.steps.items())
        yield from _head("tool_calls_total", "counter", "Calls of tools; one that does not exist has no name.")
        for (tool, outcome), n in self.tools.items():
            yield f'{_PREFIX}tool_calls_total{{tool="{tool}",outcome="{outcome}"}} {n}'
        yield from _head("tokens_total", "counter", "Tokens of the model's calls.")
        yield from (f'{_PREFIX}tokens_total{{kind="{k}"}} {n}' for k, n in self.tokens.items())
        yield from _histogram("task_seconds", "From the request to the end of its answer.", self.task)
        yield from _histogram("model_seconds", "One call of the model.", self.model)
        yield from _histogram("tool_seconds", "One call of a tool.", self.tool)


def _histogram(name: str, text: str, histogram: Histogram) -> Iterator[str]:
    yield from _head(name, "histogram", text)
    total = 0
    for bound_s, count in zip((*_BOUNDS_S, None), histogram.counts, strict=True):
        total += count
        yield f'{_PREFIX}{name}_bucket{{le="{"+Inf" if bound_s is None else f"{bound_s:g}"}"}} {total}'
    yield f"{_PREFIX}{name}_sum {histogram.sum_s:.9g}"
    yield f"{_PREFIX}{name}_count {total}"


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {_PREFIX}{name} {text}"
    yield f"# TYPE {_PREFIX}{name} {kind}"
