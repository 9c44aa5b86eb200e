"""A plan with several targets: for each a run of its own, one after another with the same prompts, then a comparison.

A budget is for all, and each has an equal share: so all are measured equally long. What fails at one target leaves the
others alone, and ``resume`` tries again what failed, was cut, or was not begun.
"""

from pathlib import Path

import msgspec

from withstand import __version__, clock
from withstand.app.apart import plans_of
from withstand.app.beforehand import say_how_long_all
from withstand.app.budget import fitted
from withstand.app.compare import Compared, compared_and_kept
from withstand.app.endpoint import check_target
from withstand.app.foretold import check_before_start
from withstand.app.home import NOWHERE, Home, to_go_on
from withstand.app.retold import named
from withstand.app.run import resume, run
from withstand.app.salt import salted, say_salt
from withstand.app.screen import Outcome, Screen
from withstand.app.stages import all_stages
from withstand.app.verdict import NOT_MEASURED, code_of_all
from withstand.errors import UsageError, WithstandError
from withstand.runs import Asked, RunFolder, RunState, TargetsFolder, this_process
from withstand.spec import Plan, is_redacted, redacted


class TargetsOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended."""

    exit_code: int
    folder: Path
    outcomes: dict[str, Outcome]
    """By target; those of which there is something."""
    compared: Compared | None
    """None where there are no two to compare."""


def run_targets(plan: Plan, *, argv: list[str], screen: Screen, home: Home = NOWHERE) -> TargetsOutcome:
    """Measure each target.

    Raises:
        WithstandError: nothing was measured at any of them.
    """
    first = _checked(dict(plans_of(plan, Path())))
    drawn, plan = plan, salted(plan)
    asked = Asked(
        version=__version__,
        created_utc=clock.utc_iso(clock.anchor().wall_ns),
        plan=redacted(plan),
        argv=tuple(argv),
        writer=this_process(),
    )
    folder = TargetsFolder.create(Path(plan.output_dir) if plan.output_dir else None, asked)
    say_how_long_all(first, all_stages(first), len(plan.targets), "targets", screen)
    say_salt(drawn, plan, screen)
    home.note(folder.path)
    return _Round(folder, plan, argv, screen, home).everything()


def resume_targets(path: Path, *, screen: Screen, home: Home = NOWHERE) -> TargetsOutcome:
    """Go on where it stopped.

    Raises:
        WithstandError: it cannot be gone on with.
    """
    folder = TargetsFolder.open(path)
    plan = folder.asked.plan
    if is_redacted(plan):
        raise UsageError(f"{path} was run with a secret in a header or the body, which is not stored; run it anew.")
    plan = home.led(plan, path)
    folder.take_over()
    return _Round(folder, plan, list(folder.asked.argv), screen, home).everything()


def _checked(plans: dict[str, Plan]) -> Plan:
    """The first's; what can be wrong with any of them is said before anything else.

    Raises:
        UsageError: a target's description, or the share of the budget.
    """
    for name, plan in plans.items():
        with named(f"targets.{name}"):
            check_target(plan.target)
    first = next(iter(plans.values()))
    try:
        first = fitted(first)
    except UsageError as e:
        raise UsageError(f"{e} That is for each of {len(plans)} targets.") from None
    check_before_start(first, all_stages(first))
    return first


class _Round:
    """From target to target."""

    def __init__(self, folder: TargetsFolder, plan: Plan, argv: list[str], screen: Screen, home: Home) -> None:
        self._folder = folder
        self._plans = dict(plans_of(plan, folder.path))
        self._argv = argv
        self._screen = screen
        self._home = home
        self._outcomes: dict[str, Outcome] = {}
        self._failed: list[WithstandError] = []

    def everything(self) -> TargetsOutcome:
        """All that is not done.

        Raises:
            WithstandError: nothing came of it.
        """
        whole = self._measured()
        if not self._folder.begun():
            self._folder.discard()
            if self._failed:
                raise self._failed[0]
            raise KeyboardInterrupt
        return TargetsOutcome(
            exit_code=self._exit_code() if whole else NOT_MEASURED,
            folder=self._folder.path,
            outcomes=self._outcomes,
            compared=self._compared(),
        )

    def _measured(self) -> bool:
        """Whether all targets had their turn: the user may have stopped it."""
        for place, name in enumerate(self._plans, start=1):
            self._screen.message(f"Target {name}, {place} of {len(self._plans)}.")
            try:
                self._outcomes[name] = self._one(name)
                if RunFolder.open(self._folder.of(name)).manifest.state is RunState.INTERRUPTED:
                    return self._stopped()
            except WithstandError as e:
                self._failed.append(e)
                self._screen.message(f"Target {name}: {e}")
            except KeyboardInterrupt:
                return self._stopped()
        return True

    def _stopped(self) -> bool:
        if self._folder.begun():
            self._screen.message(f"`{to_go_on('run', self._folder.path)}` goes on with all targets.")
        return False

    def _one(self, name: str) -> Outcome:
        path = self._folder.of(name)
        if RunFolder.is_one(path):
            return resume(path, screen=self._screen, home=self._home)
        return run(self._plans[name], argv=self._argv, screen=self._screen, home=self._home)

    def _exit_code(self) -> int:
        codes = {outcome.exit_code for outcome in self._outcomes.values()}
        return NOT_MEASURED if self._failed else code_of_all(codes)

    def _compared(self) -> Compared | None:
        """What there is of the targets, in the plan's order."""
        if len(self._folder.begun()) < 2:
            return None
        try:
            return compared_and_kept(self._folder.path)
        except WithstandError as e:
            self._screen.message(f"The targets are not compared: {e}")
            return None
