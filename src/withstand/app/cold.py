"""Which stages of a run were cold, and which warm; how the server became so. Pure."""

from withstand.runs import Manifest, RunState
from withstand.spec import Plan


def cold_and_warm(manifest: Manifest) -> dict[int, bool]:
    """Place in the list → whether the stage was cold: the cold ones, and the one after each of them, which is warm."""
    shown = [(i, e) for i, e in manifest.in_order() if not e.stage.warmup and e.state is not RunState.SUPERSEDED]
    found: dict[int, bool] = {}
    for place, (i, entry) in enumerate(shown):
        if entry.stage.cold:
            found[i] = True
        elif place and shown[place - 1][1].stage.cold:
            found[i] = False
    return found


def cold_way(plan: Plan) -> str:
    """How the server becomes cold again."""
    return plan.cold.way(serves=plan.target.serve is not None)
