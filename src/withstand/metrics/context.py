"""What a stage's records must be judged against: what was asked, and how the client fared."""

import msgspec

from withstand.metrics.absences import Absence
from withstand.metrics.server import Watched
from withstand.record import Health
from withstand.spec import Slo, Stage


class StageContext(msgspec.Struct, frozen=True, kw_only=True):
    """One stage's plan and circumstances."""

    stage: Stage
    """Its ``num_prompts`` is filled in."""
    goodput: Slo = Slo()
    health: tuple[Health, ...] = ()
    stopped_early: bool = False
    ended_by: str | None = None
    """What ended it before its limit, as was asked; in half a sentence."""
    cut_short: str | None = None
    """Why it is shorter than its plan where nobody asked for that; in half a sentence."""
    cut_at_once: bool = False
    """What ran was not waited for then, on purpose."""
    warmed_up: bool = True
    tokenizer: str | None = None
    """Who counted the tokens that the server did not: of prompts, and of answers' texts."""
    tokenizer_exact: bool = True
    identical_prompts: int = 0
    """Requests whose prompt had been sent before in this run."""
    repeatable: bool = False
    """Other runs send the same prompts, and may have done so before."""
    cores: int | None = None
    """Of the machine that started the run."""
    beside_server: bool = False
    """The server is reached over the loopback: it shares these cores."""
    watched: Watched | None = None
    """What was seen of the server's side."""
    absences: tuple[Absence, ...] = ()
    """Of services that the requests went through."""
    damaged_lines: int = 0
    """Of the run's records; nobody knows of which stage each was."""
    cycles: int = 1
    """How often the plan's stages are gone through; each has few requests then."""
    fixed_lengths: bool = False
    """Every request prescribed its answer's length (``ignore_eos``): any other length is the server's fault."""
    simulated: bool = False
    """The engine is a model of one: nothing was computed."""
