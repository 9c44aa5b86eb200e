"""Two sides measured in turn, block by block, and compared by pairs of blocks: what ``withstand ab`` does.

Each block is a run of its own, with a warm-up of its own. Both blocks of a pair send the same prompts, each pair
others. What fails costs its pair, and ``resume`` measures the pairs that are left.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from withstand import __version__, clock
from withstand.app.beforehand import say_how_long_all
from withstand.app.budget import fitted
from withstand.app.compare import Compared, compared_and_kept
from withstand.app.endpoint import ask_target, check_target
from withstand.app.estimate import lasting
from withstand.app.foretold import check_before_start
from withstand.app.forgetting import forgotten
from withstand.app.home import NOWHERE, Home, to_go_on
from withstand.app.once import OnceScreen
from withstand.app.report import Loader
from withstand.app.retold import named
from withstand.app.run import run
from withstand.app.salt import salted, say_salt
from withstand.app.screen import Screen
from withstand.app.stages import all_stages
from withstand.app.verdict import NOT_MEASURED, code_of_all, exit_code, not_measured
from withstand.compare.setting import Setting, departures
from withstand.compare.shape import Verdict
from withstand.control.interleaving import Block, Pair, blocks_of
from withstand.errors import MeasureError, UsageError, WithstandError
from withstand.metrics.doubts import DoubtKind
from withstand.report.numbers import counted
from withstand.runs import AskedSide, AskedTurns, RunFolder, RunState, TurnsFolder, this_process
from withstand.spec import Plan, Target, is_redacted, redacted
from withstand.wire.reply import one_line

_FAILED_MAX = 2
"""Pairs one after another: then it is not chance."""
_OWN = ("target", "price", "output_dir")
"""Of a plan: what may differ between the sides."""
_INSIST = "measure one model on both sides, or insist with --force"
_BY_EFFECT = frozenset({DoubtKind.CLIENT_BOUND})
"""What our own error could have made of a difference is no verdict in the comparison (decisions 005 and 009)."""


class AbOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended."""

    exit_code: int
    folder: Path
    pairs: int
    """Those that are whole."""
    asked: int
    compared: Compared | None
    """None where there is no pair."""
    unmeasured: str | None = None
    """Why the exit code is 3, though all pairs are there."""


class Sides(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for, with all its secrets."""

    a: AskedSide
    b: AskedSide
    pairs: int
    reset_cache: bool = True
    force: bool = False
    """Compare although they ask for different models."""

    def seeded(self) -> "Sides":
        """Both with one seed and one salt."""
        first = salted(self.a.plan)
        alike = {"seed": first.seed, "salt": first.salt}
        a, b = (msgspec.structs.replace(s, plan=msgspec.structs.replace(s.plan, **alike)) for s in (self.a, self.b))
        return msgspec.structs.replace(self, a=a, b=b)


def run_ab(
    sides: Sides, *, output_dir: Path | None, argv: list[str], screen: Screen, home: Home = NOWHERE
) -> AbOutcome:
    """Measure both.

    Raises:
        WithstandError: they are not comparable, or nothing was measured.
    """
    screen = OnceScreen(screen)
    first = _checked(sides)
    drawn, sides = sides.a.plan, sides.seeded()
    asked = AskedTurns(
        version=__version__,
        created_utc=clock.utc_iso(clock.anchor().wall_ns),
        a=_written(sides.a),
        b=_written(sides.b),
        pairs=sides.pairs,
        reset_cache=sides.reset_cache,
        force=sides.force,
        argv=tuple(argv),
        writer=this_process(),
    )
    folder = TurnsFolder.create(output_dir, asked)
    try:
        _ask(sides)
    except WithstandError:
        folder.discard()
        raise
    say_how_long_all(first, all_stages(first), 2 * sides.pairs, f"blocks ({sides.pairs} pairs)", screen)
    say_salt(drawn, sides.a.plan, screen)
    home.note(folder.path)
    return _Turns(folder, (sides.a.plan, sides.b.plan), argv, screen, home).everything()


def resume_ab(path: Path, *, screen: Screen, home: Home = NOWHERE) -> AbOutcome:
    """Measure the pairs that are left.

    Raises:
        WithstandError: it cannot be gone on with.
    """
    folder = TurnsFolder.open(path)
    plans = (home.led(folder.asked.a.plan, path, "ab"), home.led(folder.asked.b.plan, path, "ab"))
    if any(is_redacted(plan) for plan in plans):
        raise UsageError(f"{path} was run with a secret in a header or the body, which is not stored; run it anew.")
    folder.take_over()
    return _Turns(folder, plans, list(folder.asked.argv), OnceScreen(screen), home).everything()


def _written(side: AskedSide) -> AskedSide:
    return msgspec.structs.replace(side, plan=redacted(side.plan))


def _checked(sides: Sides) -> Plan:
    """A block's; what can be wrong is said before anything else.

    Raises:
        UsageError: the sides are not to be measured alike, or one of them is not described rightly.
    """
    blocks = len(blocks_of(sides.pairs))
    if other := _other_load(sides.a.plan, sides.b.plan):
        raise UsageError(f"{sides.a.label} and {sides.b.label} must be the same but for the target; {other} differs.")
    for side in (sides.a, sides.b):
        with named(one_line(side.label)):
            check_target(side.plan.target)
            first = fitted(of_block(side.plan, Block(0, 1, 0), blocks, Path()))
    check_before_start(first, all_stages(first))
    return first


def _ask(sides: Sides) -> None:
    """Before the first block, lest the second side is found to be missing after the first was measured.

    Raises:
        TargetError: one of them does not answer.
        UsageError: they are of different models.
    """
    models = []
    for side in (sides.a, sides.b):
        with named(one_line(side.label)):
            models.append(Setting(model=ask_target(side.plan.target)))
    if not sides.force and (differ := departures(*models).values()):
        raise UsageError(f"{sides.a.label} and {sides.b.label} have different models: {', '.join(differ)}; {_INSIST}.")


def _other_load(a: Plan, b: Plan) -> str | None:
    """The first field of the plans that differs and must not; fields that ask for more than one run."""
    for plan in (a, b):
        for name in ("targets", "rates", "find_limit"):
            if getattr(plan, name):
                raise UsageError(f"ab measures fixed stages at one target a side; leave out {name}.")
    fields = [name for name in Plan.__struct_fields__ if name not in _OWN]
    return next((name for name in fields if getattr(a, name) != getattr(b, name)), None)


def of_block(plan: Plan, block: Block, blocks: int, path: Path) -> Plan:
    """The plan of one block's run: the prompts of its pair, and its share of the budget."""
    return msgspec.structs.replace(
        plan,
        seed=(plan.seed or 0) + block.pair,
        budget_s=None if plan.budget_s is None else plan.budget_s / blocks,
        output_dir=str(path),
    )


class _Turns:
    """From block to block."""

    def __init__(
        self, folder: TurnsFolder, plans: tuple[Plan, Plan], argv: list[str], screen: Screen, home: Home
    ) -> None:
        self._folder = folder
        self._plans = plans
        self._argv = argv
        self._screen = screen
        self._home = home
        self._error: WithstandError | None = None

    def everything(self) -> AbOutcome:
        """All pairs that are left.

        Raises:
            WithstandError: nothing came of it.
        """
        self._measure(self._folder.left())
        if not self._folder.begun():
            self._folder.discard()
            raise self._error or KeyboardInterrupt
        whole, left = self._folder.whole(), self._folder.left()
        if left:
            self._screen.message(f"`{to_go_on('ab', self._folder.path)}` measures {counted(len(left), 'pair')}.")
        blocks = {block.name: _judged(self._folder.of(block)) for pair in whole for block in pair}
        compared = self._compared() if whole else None
        untold = _nothing_told(compared)
        return AbOutcome(
            exit_code=NOT_MEASURED if left or untold else code_of_all([code for code, _ in blocks.values()]),
            unmeasured=next((f"Block {name}: {why}" for name, (_, why) in blocks.items() if why), untold),
            folder=self._folder.path,
            pairs=len(whole),
            asked=self._folder.asked.pairs,
            compared=compared,
        )

    def _measure(self, left: Sequence[Pair]) -> None:
        """Until all are measured, too many have failed, or the user stops it."""
        begun_ns, failed = clock.now_ns(), 0
        for number, pair in enumerate(left, start=1):
            try:
                self._pair(pair)
                failed = 0
            except KeyboardInterrupt:
                return
            except WithstandError as e:
                self._error = self._error or e
                self._screen.message(f"Pair {pair[0].pair} is not measured: {e}")
                failed += 1
                if failed == _FAILED_MAX:
                    return
            if number < len(left):
                rest_s = (clock.now_ns() - begun_ns) / 1e9 / number * (len(left) - number)
                self._screen.message(f"{counted(len(left) - number, 'pair')} left, about {lasting(rest_s)}.")

    def _pair(self, pair: Pair) -> None:
        """Both blocks, though one of them was measured some time ago."""
        self._folder.clear(pair)
        for block in pair:
            self._block(block)

    def _block(self, block: Block) -> None:
        """One run.

        Raises:
            WithstandError: it failed.
            KeyboardInterrupt: the user stopped it.
        """
        asked = self._folder.asked
        blocks, path = 2 * asked.pairs, self._folder.of(block)
        self._screen.message(f"Block {block.name}, {block.place + 1} of {blocks}: {asked.sides[block.side].label}.")
        plan = of_block(self._plans[block.side], block, blocks, path)
        self._forget(block, plan.target)
        run(plan, argv=self._argv, screen=self._screen, home=self._home)
        manifest = RunFolder.open(path).manifest
        if manifest.state is RunState.INTERRUPTED:
            raise KeyboardInterrupt
        if manifest.state is RunState.FAILED:
            raise MeasureError(manifest.error or "it failed.")

    def _forget(self, block: Block, target: Target) -> None:
        """A server that is started for the block knows nothing yet."""
        asked = self._folder.asked
        if not asked.reset_cache or target.serve or target.base_url is None:
            return
        what = forgotten(target)
        self._folder.note_reset(block, what)
        self._screen.message(f"{asked.sides[block.side].label}: {what}.")

    def _compared(self) -> Compared | None:
        try:
            return compared_and_kept(self._folder.path, force=self._folder.asked.force)
        except WithstandError as e:
            self._screen.message(f"The sides are not compared: {e}")
            return None


def _judged(path: Path) -> tuple[int, str | None]:
    """A block's exit code, and why its numbers cannot stand, if so."""
    folder = RunFolder.open(path)
    summary = Loader(charts=False).load(folder).summary
    return exit_code(summary, folder.manifest, _BY_EFFECT), not_measured(summary, _BY_EFFECT)


def _nothing_told(compared: Compared | None) -> str | None:
    """Why no verdict was given at all, where none was."""
    if compared is None:
        return "The sides could not be compared."
    rows = (row for group in compared.comparison.groups for row in group.rows)
    verdicts = {found.verdict for row in rows for found in row.differences if found is not None}
    return None if verdicts - {Verdict.UNKNOWN} else "Nothing could be told of the sides: see the comparison's doubts."
