"""The whole of one run: a target, a workload, stages, and what counts as good."""

from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from withstand.spec.arrivals import Arrivals, Inf
from withstand.spec.target import Target
from withstand.spec.workload import Workload

Ms = Annotated[float, msgspec.Meta(gt=0)]
_SECRET_WORDS = ("auth", "key", "token", "secret", "cookie", "password")


class Slo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits that a good request keeps, in ms; None = no limit.

    A stage in which less than ``share`` of all requests are good misses the SLO (exit code 1).
    """

    ttft: Ms | None = None
    tpot: Ms | None = None
    e2el: Ms | None = None
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.99


class Stage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One load held for a while. It ends with its prompts or its duration, whichever is first."""

    name: str = ""
    phase: str | None = None
    """A heading that several stages share: warm-up, baseline, concurrency, sustained."""
    arrivals: Arrivals = Inf()
    max_concurrency: Annotated[int, msgspec.Meta(ge=1)] | None = None
    num_prompts: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """None = the workload's."""
    duration_s: Annotated[float, msgspec.Meta(gt=0)] | None = None
    workload: Workload | None = None
    """None = the plan's."""
    warmup: bool = False
    """Sent, recorded, and left out of every result."""


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ``withstand run`` does."""

    target: Target = Target()
    workload: Workload = Workload()
    stages: Annotated[tuple[Stage, ...], msgspec.Meta(min_length=1)] = (Stage(),)
    seed: int = 0
    num_warmups: Annotated[int, msgspec.Meta(ge=0)] = 1
    """Requests sent before the first stage and discarded; 0 = none, and the report says that the start was cold."""
    goodput: Slo = Slo()
    workers: Annotated[int, msgspec.Meta(ge=1, le=256)] | None = None
    """Processes; None = chosen from the load asked."""
    drain_s: Annotated[float, msgspec.Meta(ge=0)] = 60.0
    """How long running requests may take to end after a stage's duration or the first Ctrl-C."""
    output_dir: str | None = None


def redacted(plan: Plan) -> Plan:
    """The plan as it may be written to disk: nothing in it opens a door."""
    target = plan.target
    headers = {k: "***" if _is_secret(k) else v for k, v in target.headers.items()}
    body = {k: "***" if _is_secret(k) else v for k, v in target.extra_body.items()}
    url = _without_user(target.base_url) if target.base_url else None
    return msgspec.structs.replace(
        plan, target=msgspec.structs.replace(target, headers=headers, extra_body=body, base_url=url)
    )


def _is_secret(name: str) -> bool:
    lower = name.lower()
    return any(word in lower for word in _SECRET_WORDS) and "max" not in lower and "min" not in lower


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="***" if parts.query else "").geturl()
