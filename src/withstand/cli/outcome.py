"""What is printed when a use case has ended: the table of its stages and the report's path, or ``summary.json``."""

from pathlib import Path
from typing import TYPE_CHECKING

from withstand.app.home import to_go_on
from withstand.app.hunter import limit_code
from withstand.app.screen import Outcome
from withstand.cli.output import rendered, say, write_result
from withstand.cli.streams import check_written
from withstand.control.limit import Limit
from withstand.report.json import summary_json
from withstand.report.limit import limit_json, print_limit
from withstand.report.terminal import print_costs, print_report
from withstand.report.write import REPORT_NAME

_MORE_TIME = "4m"
"""Of a search that goes on."""

if TYPE_CHECKING:
    from withstand.app.ab import AbOutcome
    from withstand.app.compare import Compared
    from withstand.app.targets import TargetsOutcome


def show_limit(outcome: Outcome, limit: Limit, *, as_json: bool) -> int:
    """The limit, and all that was tried on the way to it."""
    if as_json:
        write_result(limit_json(limit).decode())
    else:
        write_result(rendered(lambda console: print_limit(limit, console)))
        write_result(rendered(lambda console: print_costs(outcome.summary, console)))
        _say_where(outcome.folder)
    if outcome.summary.partial:
        say(f"withstand: {outcome.summary.partial}")
    if limit.ended:
        say(f"withstand: `withstand find-limit --resume {outcome.folder} --budget {_MORE_TIME}` goes on with it.")
    check_written(outcome.folder)
    return limit_code(limit, outcome)


def _say_where(folder: Path) -> None:
    """The report, unless there was no room for it."""
    path = folder / REPORT_NAME
    write_result(f"Report: {path}" if path.exists() else f"`withstand report {folder}` tells it again.")


def show_targets(outcome: "TargetsOutcome", *, as_json: bool) -> int:
    """Each target's table, then all of them compared; as JSON the comparison, or without one what there is."""
    compared = outcome.compared
    for name, one in outcome.outcomes.items() if not (as_json and compared) else ():
        if not as_json:
            write_result(f"\n— {name} —")
        _show(one, as_json=as_json, of=f"{name}: ")
    if compared:
        _show_compared(compared, outcome.folder, as_json=as_json)
    check_written(outcome.folder)
    return outcome.exit_code


def show_ab(outcome: "AbOutcome", *, as_json: bool) -> int:
    """Both sides compared; on stderr why that is not all, or not to be relied on."""
    if outcome.compared:
        _show_compared(outcome.compared, outcome.folder, as_json=as_json)
    if outcome.pairs < outcome.asked:
        rest = f"`{to_go_on('ab', outcome.folder)}` measures the rest"
        say(f"withstand: {outcome.pairs} of {outcome.asked} pairs are measured; {rest}.")
    elif outcome.unmeasured:
        say(f"withstand: {outcome.unmeasured}")
    check_written(outcome.folder)
    return outcome.exit_code


def _show_compared(compared: "Compared", folder: Path, *, as_json: bool) -> None:
    from withstand.report.comparison_text import print_comparison  # noqa: PLC0415  one run needs no comparison

    if as_json:
        write_result((folder / "comparison.json").read_text("utf-8"))
        return
    write_result(rendered(lambda console: print_comparison(compared.comparison, compared.decisions, console)))
    write_result(f"Comparison: {folder / 'comparison.html'}")


def show_outcome(outcome: Outcome, *, as_json: bool) -> int:
    """Print it, and on stderr a sentence on each reason why the exit code, which is the outcome's, is not 0."""
    _show(outcome, as_json=as_json)
    check_written(outcome.folder)
    return outcome.exit_code


def _show(outcome: Outcome, *, as_json: bool, of: str = "") -> None:
    """``of`` is put before the sentences: whose they are, where there are several."""
    if as_json:
        write_result(summary_json(outcome.summary, outcome.limit).decode())
    else:
        write_result(rendered(lambda console: print_report(outcome.summary, console)))
        _say_where(outcome.folder)
    for why in (outcome.missed, outcome.unmeasured):
        if why:
            say(f"withstand: {of}{why}")
