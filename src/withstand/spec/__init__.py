"""All that a user may ask for: typed, frozen, unknown keys refused with the path of the key."""

from withstand.spec.arrivals import (
    SECONDS_MAX,
    Arrivals,
    Constant,
    Gamma,
    Inf,
    Poisson,
    Ramp,
    Step,
    StepPart,
    Trace,
    rate_rps_of,
)
from withstand.spec.parse import parse_plan, plan_from_file, set_path
from withstand.spec.plan import Plan, Rates, Slo, Stage, Watch, is_redacted, redacted, secret_texts
from withstand.spec.target import Target, Timeouts
from withstand.spec.workload import Workload

__all__ = [
    "SECONDS_MAX",
    "Arrivals",
    "Constant",
    "Gamma",
    "Inf",
    "Plan",
    "Poisson",
    "Ramp",
    "Rates",
    "Slo",
    "Stage",
    "Step",
    "StepPart",
    "Target",
    "Timeouts",
    "Trace",
    "Watch",
    "Workload",
    "is_redacted",
    "parse_plan",
    "plan_from_file",
    "rate_rps_of",
    "redacted",
    "secret_texts",
    "set_path",
]
