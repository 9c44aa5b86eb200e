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
from withstand.spec.cold import Cold
from withstand.spec.parse import parse_plan, plan_from_file, set_path
from withstand.spec.plan import (
    CONCURRENCY_MAX,
    Plan,
    Rates,
    Slo,
    Stage,
    Watch,
    is_redacted,
    redacted,
    secret_texts,
)
from withstand.spec.precision import Precision, precision_of
from withstand.spec.price import Price, TokenPrice, Usage, over
from withstand.spec.promise import Promise, promise_of
from withstand.spec.serve import Serve
from withstand.spec.target import Target, Timeouts
from withstand.spec.until import LimitSearch, Until
from withstand.spec.workload import PROMPTS_MAX, TOKENS_MAX, Workload

__all__ = [
    "CONCURRENCY_MAX",
    "PROMPTS_MAX",
    "SECONDS_MAX",
    "TOKENS_MAX",
    "Arrivals",
    "Cold",
    "Constant",
    "Gamma",
    "Inf",
    "LimitSearch",
    "Plan",
    "Poisson",
    "Precision",
    "Price",
    "Promise",
    "Ramp",
    "Rates",
    "Serve",
    "Slo",
    "Stage",
    "Step",
    "StepPart",
    "Target",
    "Timeouts",
    "TokenPrice",
    "Trace",
    "Until",
    "Usage",
    "Watch",
    "Workload",
    "is_redacted",
    "over",
    "parse_plan",
    "plan_from_file",
    "precision_of",
    "promise_of",
    "rate_rps_of",
    "redacted",
    "secret_texts",
    "set_path",
]
