"""The whole of one run: a target, a workload, stages, and what counts as good."""

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from withstand.spec.arrivals import SECONDS_MAX, Arrivals, Inf, Seconds
from withstand.spec.cold import Cold
from withstand.spec.price import Money, Price, over
from withstand.spec.serve import Serve
from withstand.spec.target import Target
from withstand.spec.until import LimitSearch, Until
from withstand.spec.workload import PROMPTS_MAX, Workload

CONCURRENCY_MAX = 1_000_000

Ms = Annotated[float, msgspec.Meta(gt=0, le=1e10)]
TargetName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$")]
"""It is a folder's name too."""
MASK = "***"
_OPENS = re.compile(r"^--?(\S*[-_])?(api[-_]?key|password|secret|(hf|auth|access|api)[-_]token)$", re.IGNORECASE)
_OPENS_HERE = re.compile(
    r"^(--?(?:\S*[-_])?(?:api[-_]?key|password|secret|(?:hf|auth|access|api)[-_]token))=.*", re.IGNORECASE
)
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
    max_concurrency: Annotated[int, msgspec.Meta(ge=1, le=CONCURRENCY_MAX)] | None = None
    num_prompts: Annotated[int, msgspec.Meta(ge=1, le=PROMPTS_MAX)] | None = None
    """None = the workload's."""
    duration_s: Seconds | None = None
    workload: Workload | None = None
    """None = the plan's."""
    warmup: bool = False
    """Sent, recorded, and left out of every result."""
    cold: bool = False
    """The server is made cold before it; all its prompts are sent at once."""
    until: Until | None = None
    """It ends when this is reached, at its limit at the latest; None = at its limit."""

    @property
    def is_closed(self) -> bool:
        """Whether each answer's end sends the next request, and nothing else does."""
        return isinstance(self.arrivals, Inf) and self.max_concurrency is not None


class Watch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is looked at beside the requests: the server's own metrics, this machine, its GPUs."""

    urls: tuple[str, ...] = ()
    """Prometheus endpoints: ``http://127.0.0.1:8000/metrics``. None: ``/metrics`` of the target, if it has that."""
    interval_s: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 1.0
    """0 = nothing is looked at."""


class Rates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Stages whose rates are decided when all others are done: shares of the most that a phase was seen to carry."""

    shares: Annotated[tuple[Annotated[float, msgspec.Meta(gt=0, le=100)], ...], msgspec.Meta(min_length=1)]
    """1 = just as many requests a second as the best stage of the phase ``of`` answered."""
    duration_s: Seconds
    of: str = "concurrency"
    phase: str = "sustained"
    """The heading of these stages; each entry has one of its own."""
    burstiness: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = 1.0
    """1 = Poisson arrivals; below 1 burstier, above 1 steadier."""
    workload: Workload | None = None
    """None = that of the best stage."""


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ``withstand run`` does."""

    target: Target = Target()
    targets: dict[TargetName, Target] = {}
    """Several, each laid over ``target``: the stages are measured with each of them, a run for each."""
    workload: Workload = Workload()
    workloads: dict[str, Workload] = {}
    """Several, each laid over ``workload``: the stages are measured with each of them."""
    stages: Annotated[tuple[Stage, ...], msgspec.Meta(min_length=1)] = (Stage(),)
    cycles: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    """So often the stages are gone through, warm-ups once: ``cold-1``, ``warm-1``, ``cold-2``, …"""
    cold: Cold = Cold()
    """How the server becomes cold before stages that ask for it."""
    rates: tuple[Rates, ...] = ()
    budget_s: Seconds | None = None
    """The run keeps within it: durations are scaled down, and no stage begins that cannot end in time."""
    until: Until | None = None
    """For every stage but warm-ups; what a stage says for itself is laid over it, key by key."""
    leave_out_heavier: bool = False
    """When a stage ended because the server has more than it can do, leave out those that only load it more."""
    leave_out_too_long: bool = False
    """Leave out stages whose prompt and answer are longer than what the server says that it takes."""
    seed: int | None = None
    """Of lengths and times, and without a salt of words too. None = 0, and words get a salt of each run's own."""
    salt: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    """Makes words, and the order of a file's rows, unlike those of other salts; empty = the seed's own."""
    num_warmups: Annotated[int, msgspec.Meta(ge=0, le=CONCURRENCY_MAX)] = 1
    """Requests sent before the first stage and discarded; 0 = none, and the report says that the start was cold."""
    goodput: Slo = Slo()
    workers: Annotated[int, msgspec.Meta(ge=1, le=256)] | None = None
    """Processes; None = chosen from the load asked, or one a node of a Ray cluster."""
    fleet: Annotated[str, msgspec.Meta(pattern="^(local|ray|ray:.+)$")] = "local"
    """Where the workers run: ``local``, ``ray`` (the cluster of this machine), ``ray://HOST:PORT``, ``ray:ADDRESS``."""
    drain_s: Annotated[float, msgspec.Meta(ge=0, le=SECONDS_MAX)] = 60.0
    """How long running requests may take to end after a stage's duration or the first Ctrl-C."""
    price: Price = Price()
    """In any currency; without one of an hour, tokens have none."""
    price_per_hour: Money | None = None
    """The short form of ``price.per_hour``, and always None in code: it is found there."""
    watch: Watch = Watch()
    doctor: bool = False
    """The path is examined before it is loaded, and the diagnosis stands in the report."""
    output_dir: str | None = None
    find_limit: LimitSearch | None = None
    """Further stages are tried until the largest load is known that keeps these promises."""

    def __post_init__(self) -> None:
        """One place for a price."""
        if self.price_per_hour is not None:
            if self.price.per_hour is not None:
                raise ValueError("price_per_hour and price.per_hour are the same; give one of them")
            price = over(Price(per_hour=self.price_per_hour), self.price)
            msgspec.structs.force_setattr(self, "price", price)
            msgspec.structs.force_setattr(self, "price_per_hour", None)

    @property
    def asked_watch(self) -> Watch:
        """With the target's own addresses, where it has any."""
        return msgspec.structs.replace(self.watch, urls=self.target.metrics_urls or self.watch.urls)

    @property
    def asked_price(self) -> Price:
        """The target's own, laid over that of the plan."""
        return over(self.target.price, self.price)


def redacted(plan: Plan) -> Plan:
    """The plan as it may be written to disk: nothing in it opens a door. Values of headers are never written."""
    targets = {name: _redacted(target) for name, target in plan.targets.items()}
    return msgspec.structs.replace(plan, target=_redacted(plan.target), targets=targets)


def _redacted(target: Target) -> Target:
    headers = dict.fromkeys(target.headers, MASK)
    url = _without_user(target.base_url) if target.base_url else None
    own = {"headers": headers, "extra_body": _masked(target.extra_body), "base_url": url}
    return msgspec.structs.replace(target, **own, serve=_serve_redacted(target.serve) if target.serve else None)


def _serve_redacted(serve: Serve) -> Serve:
    """A word after an option that sounds secret is masked, and so is a variable."""
    before = ("", *serve.argv)
    argv = tuple(MASK if _OPENS.search(last) else word for last, word in zip(before, serve.argv, strict=False))
    argv = tuple(_OPENS_HERE.sub(rf"\1={MASK}", word) for word in argv)
    return msgspec.structs.replace(serve, argv=argv, env=_masked(serve.env))


def is_redacted(plan: Plan) -> bool:
    """Whether something was masked, so that the plan cannot be carried out again."""
    targets = (plan.target, *plan.targets.values())
    return any(target.headers or MASK in _texts(target.extra_body) or _is_masked(target.serve) for target in targets)


def _is_masked(serve: Serve | None) -> bool:
    return serve is not None and any(MASK in text for text in (*serve.argv, *serve.env.values()))


def secret_texts(body: dict[str, Any]) -> list[str]:
    """The texts that ``redacted`` masks in a body."""
    masked = set(_texts(_masked(body)))
    return [text for text in _texts(body) if text not in masked]


def _masked(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {k: MASK if _is_secret(k) and isinstance(v, str) else _masked(v) for k, v in tree.items()}
    return [_masked(item) for item in tree] if isinstance(tree, list) else tree


def _texts(tree: Any) -> list[str]:
    if isinstance(tree, dict):
        return [text for value in tree.values() for text in _texts(value)]
    if isinstance(tree, list):
        return [text for item in tree for text in _texts(item)]
    return [tree] if isinstance(tree, str) else []


def _is_secret(name: str) -> bool:
    lower = name.lower()
    return any(word in lower for word in _SECRET_WORDS)


def _without_user(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query=MASK if parts.query else "").geturl()
