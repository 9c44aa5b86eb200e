"""What an agent made of its tasks: how many it solved, in how many steps, and where the time went.

Success is counted over all tasks with a known answer, failed requests among them; times and counts are of the answers
that came to a good end. Durations of steps are of the agent's clock, the rest of ours.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Self

from withstand.metrics.latency import NS_PER_MS, Timing
from withstand.metrics.quantiles import distribution
from withstand.metrics.sample import Sample
from withstand.metrics.summary import AgentSide
from withstand.record import Record

SUCCESS = "success_rate"
MEASURED: Mapping[str, bool] = {
    "steps": False, "model": True, "tools": True, "own": True, "final_ttft": True, "tokens": False
}  # fmt: skip
"""What is measured of a task, as ``AgentSide`` calls it; whether it is a time."""


class Agents:
    """Folded over the records of one stage."""

    def __init__(self) -> None:
        self.tasks = self.solved = self.limited = 0
        self.calls: Counter[str] = Counter()
        self.failed_calls: Counter[str] = Counter()
        self.steps = Sample()
        self.model = Sample()
        self.tools = Sample()
        self.own = Sample()
        self.final_ttft = Sample()
        self.tokens = Sample()

    def add(self, record: Record, timing: Timing | None) -> None:
        """One request; ``timing`` is None unless its answer was good."""
        if record.correct is not None:
            self.tasks += 1
            self.solved += record.correct
        for step in record.steps:
            self.limited += step.kind == "limit"
            if step.kind == "tool":
                self.calls[step.name] += 1
                self.failed_calls[step.name] += not step.ok
        if record.steps and timing is not None:
            for name, value in measured(record).items():
                getattr(self, name).add(value)

    def merge(self, other: Self) -> None:
        """Those of other requests of the stage."""
        self.tasks += other.tasks
        self.solved += other.solved
        self.limited += other.limited
        self.calls.update(other.calls)
        self.failed_calls.update(other.failed_calls)
        for name in MEASURED:
            getattr(self, name).merge(getattr(other, name))

    def side(self) -> AgentSide | None:
        """None where no agent has told of steps, and no answer was known."""
        if not self.tasks and not len(self.steps) and not self.calls:
            return None
        return AgentSide(
            tasks=self.tasks,
            solved=self.solved,
            success_rate=self.solved / self.tasks if self.tasks else None,
            limited=self.limited,
            tool_calls=dict(sorted(self.calls.items())),
            failed_tool_calls={name: n for name, n in sorted(self.failed_calls.items()) if n},
            steps=distribution(self.steps, 1),
            model=distribution(self.model, NS_PER_MS),
            tools=distribution(self.tools, NS_PER_MS),
            own=distribution(self.own, NS_PER_MS),
            final_ttft=distribution(self.final_ttft, NS_PER_MS),
            tokens=distribution(self.tokens, 1),
        )


def measured(record: Record) -> dict[str, int | None]:
    """Of a good answer with steps, by the names of ``MEASURED``; times in ns, None = not known."""
    model_ns, tools_ns = took_ns(record, "model"), took_ns(record, "tool")
    own_ns = None
    if record.sent_ns is not None and record.end_ns is not None and model_ns is not None and tools_ns is not None:
        own_ns = max(0, record.end_ns - record.sent_ns - model_ns - tools_ns)
    tokens = [(step.prompt_tokens, step.output_tokens) for step in record.steps if step.kind == "model"]
    known = [n_in + n_out for n_in, n_out in tokens if n_in is not None and n_out is not None]
    return {
        "steps": len(tokens),
        "model": model_ns,
        "tools": tools_ns,
        "own": own_ns,
        "final_ttft": final_ttft_ns(record),
        "tokens": sum(known) if known and len(known) == len(tokens) else None,
    }


def took_ns(record: Record, kind: str) -> int | None:
    """The time of all steps of a kind; of tools that ran side by side the longest. None = one is not known."""
    groups: list[list[int]] = [[]]
    for step in record.steps:
        if step.kind != kind:
            groups.append([])
        elif step.took_ns is None:
            return None
        else:
            groups[-1].append(step.took_ns)
    whole = max if kind == "tool" else sum
    return sum(whole(group) for group in groups if group)


def final_ttft_ns(record: Record) -> int | None:
    """From the send to the first output behind the last call of a tool; None without a stream."""
    events = max((step.events for step in record.steps if step.kind == "tool"), default=0)
    if not record.streamed or record.sent_ns is None or events >= len(record.chunk_ns):
        return None
    return record.chunk_ns[events] - record.sent_ns
