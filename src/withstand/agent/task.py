"""One task on its way: who hears of it, what it has spent, how it ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from withstand.agent.budget import Budget
from withstand.agent.step import Step


@dataclass
class Task:
    """Belongs to one request; the graph's nodes get it as their context, so it is in no checkpoint."""

    id: str
    headers: Mapping[str, str]
    budget: Budget
    say: Callable[[str], None]
    """Hears the answer's text as it comes."""
    tell: Callable[[Step], None]
    """Hears of every step that is over."""
    max_tokens: int | None = None
    """Of the answer, where the client wants so."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """What the client says of it, by the API's names."""
    history: int = 0
    """How many messages its session had before."""
    finish: str = "stop"
    steps: list[Step] = field(default_factory=list)

    def over(self, step: Step) -> None:
        """A step has ended."""
        self.steps.append(step)
        self.tell(step)

    def ended_by(self, limit: str, note: str | None = None) -> None:
        """Whatever more it wanted."""
        self.finish = "length"
        self.over(Step(kind="limit", name=limit, step=self.budget.steps, ok=False, error=note))

    def ms(self, kind: str) -> float:
        """The time of all steps of a kind."""
        return sum(step.ms for step in self.steps if step.kind == kind)
