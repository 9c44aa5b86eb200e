"""What is left for a task: calls of the model, seconds, tokens."""

from withstand import clock
from withstand.agent.config import Limits


class SpentError(Exception):
    """A limit is reached; its text is the limit's name."""


class Budget:
    """Of one task, from now on."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._began_ns = clock.now_ns()
        self.steps = 0
        self.prompt_tokens = 0
        self.output_tokens = 0

    @property
    def seconds_left(self) -> float:
        """Below 0 it is over."""
        return self._limits.seconds - (clock.now_ns() - self._began_ns) / 1e9

    @property
    def tokens_left(self) -> int:
        """Below 1 it is over."""
        return self._limits.tokens - self.prompt_tokens - self.output_tokens

    @property
    def is_last(self) -> bool:
        """Whether no call of the model comes after this one."""
        return self.steps >= self._limits.steps

    def step(self) -> None:
        """One more call of the model.

        Raises:
            SpentError: there may be none.
        """
        if self.tokens_left < 1:
            raise SpentError("tokens")
        if self.seconds_left <= 0:
            raise SpentError("seconds")
        self.steps += 1

    def spend(self, prompt_tokens: int, output_tokens: int) -> None:
        """What a call took."""
        self.prompt_tokens += prompt_tokens
        self.output_tokens += output_tokens
