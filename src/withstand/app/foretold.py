"""What is wrong with a plan and can be known before what it asks is there: said before that is brought up.

Only what the server itself would tell stays open: its tokens, its context, whether it takes the key.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from withstand import workload
from withstand.app.apart import plans_of
from withstand.app.budget import fitted
from withstand.app.cooling import check_cold
from withstand.app.endpoint import check_target
from withstand.app.retold import named
from withstand.app.salt import seed_of
from withstand.app.stages import all_stages, unlike
from withstand.app.watching import check_watch
from withstand.files import why_closed
from withstand.spec import Plan, Stage, Trace
from withstand.workload.tokenizers import Estimate, Tokenizer

_READ_AT_ONCE = 32_000_000
_THE_SERVERS = frozenset({"auto", "engine"})


def check_plan(plan: Plan) -> None:
    """Keys, certificates, addresses, lengths, tokenizers, datasets.

    Raises:
        UsageError: one of them is not there, or wrong; the text names it.
    """
    for name, one in plans_of(plan, Path()) if plan.targets else [("", plan)]:
        stages = check_asked(one, f"targets.{name}" if name else None)
    for stage in unlike(stages):
        _check_dataset(plan, stage)


def check_before_start(plan: Plan, stages: Sequence[Stage]) -> None:
    """Nothing is said, started or asked for a dataset that cannot serve, or without its tokenizer.

    What is large is read twice only where it spares the start of a server.

    Raises:
        UsageError: as above.
    """
    is_ours = plan.target.serve or plan.target.base_url is None
    for stage in unlike(stages):
        assert stage.workload is not None
        if is_ours or not _is_large(stage.workload.path):
            _check_dataset(plan, stage)
        else:
            workload.check_name(stage.workload)


def _is_large(path: str | None) -> bool:
    return (
        path is not None
        and not why_closed(Path(path))
        and Path(path).is_file()
        and Path(path).stat().st_size > _READ_AT_ONCE
    )


def check_asked(plan: Plan, where: str | None = None) -> Sequence[Stage]:
    """The same but for datasets, which are one for all who are asked; the stages.

    Raises:
        UsageError: as above; the text has ``where`` for the target.
    """
    with named(where) if where else nullcontext():
        check_target(plan.target)
    check_watch(plan.asked_watch)
    stages = all_stages(fitted(plan))
    check_cold(plan, stages)
    return stages


def _check_dataset(plan: Plan, stage: Stage) -> None:
    """How many prompts it has is known here only where that does not hang on their tokens."""
    assert stage.workload is not None
    seed = seed_of(plan, stage.name)
    dataset = workload.open_dataset(stage.workload, _tokenizer(stage.workload.tokenizer), seed)
    without_times = isinstance(stage.arrivals, Trace) and not dataset.timed
    if without_times or (dataset.certain and dataset.most is not None):
        next(workload.requests(dataset, stage, seed), None)


def _tokenizer(name: str) -> Tokenizer:
    """As close as can be: the server's own is not there yet."""
    return Estimate() if name in _THE_SERVERS else workload.open_tokenizer(name, None)
