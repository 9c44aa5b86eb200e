"""What a user is told of going on with a run."""

from pathlib import Path

from withstand.app.home import to_go_on
from withstand.spec import Plan


def how_to_go_on(plan: Plan, folder: Path) -> str:
    """One sentence."""
    verb = "find-limit" if plan.find_limit else "run"
    return f"`{to_go_on(verb, folder)}` goes on with it."


def nothing_left(plan: Plan, folder: Path) -> str:
    """Of a run whose stages are all there; a search may only have had too little time."""
    if plan.find_limit and plan.find_limit.budget_s is not None:
        more = f"`withstand find-limit --resume {folder} --budget TIME` gives it more time"
        return f"{folder} is complete; nothing is left to run in its budget. {more}."
    return f"{folder} is complete; nothing is left to run."
