"""One task on its way: who hears of it, what it has spent, how it ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

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
    finish: str = "stop"
    steps: list[Step] = field(default_factory=list)

    def over(self, step: Step) -> None:
        """A step has ended."""
        self.steps.append(step)
        self.tell(step)

    def ended_by(self, limit: str) -> None:
        """Whatever more it wanted."""
        self.finish = "length"
        self.over(Step(kind="limit", name=limit, step=self.budget.steps, ok=False))

    def ms(self, kind: str) -> float:
        """The time of all steps of a kind."""
        return sum(step.ms for step in self.steps if step.kind == kind)
