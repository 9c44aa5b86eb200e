"""Every run's prompts are unlike the last one's, unless the same are asked for: no cache of the server knows them."""

import secrets

import msgspec

from withstand.app.screen import Screen
from withstand.spec import Plan
from withstand.workload import Seed

_BYTES = 4


def salted(plan: Plan) -> Plan:
    """The plan with a seed and a salt. Who names a seed wants just its prompts, so it has none; else one is drawn."""
    if plan.salt is not None or plan.seed is not None:
        return msgspec.structs.replace(plan, seed=plan.seed or 0, salt=plan.salt or "")
    return msgspec.structs.replace(plan, seed=0, salt=secrets.token_hex(_BYTES))


def say_salt(asked: Plan, plan: Plan, screen: Screen) -> None:
    """Where one was drawn for what was asked."""
    if (asked.seed, asked.salt) != (plan.seed, plan.salt) and plan.salt:
        screen.message(
            f"Salt {plan.salt}: no prompt is one of an earlier run, though as long and at the same time; rows of a "
            "file come in another order. --same-prompts repeats them."
        )


def is_repeated(plan: Plan) -> bool:
    """Whether another run of the plan would send, or has sent, the same prompts."""
    return not plan.salt


def seed_of(plan: Plan, stage: str) -> Seed:
    """Of one stage."""
    return Seed(plan.seed or 0, stage, plan.salt or "")
