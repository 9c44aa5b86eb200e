"""A queueing model of an engine, in virtual time: its parameters, its KV cache, its steps. Pure.

What it answers is simulated, and everything that comes of it says so.
"""

from withstand.sim.engine import Engine, Job, Step
from withstand.sim.parameters import MARK, Parameters, is_simulated, parameters_from_file, simulated_name
from withstand.sim.virtual import Answer, Asked, answers

__all__ = [
    "MARK",
    "Answer",
    "Asked",
    "Engine",
    "Job",
    "Parameters",
    "Step",
    "answers",
    "is_simulated",
    "parameters_from_file",
    "simulated_name",
]
