"""What is printed when a use case has ended: the table of its stages and the report's path, or ``summary.json``."""

from withstand.app.hunter import limit_code
from withstand.app.screen import Outcome
from withstand.cli.output import rendered, say, write_result
from withstand.control.limit import Limit
from withstand.report.json import summary_json
from withstand.report.limit import limit_json, print_limit
from withstand.report.terminal import print_report
from withstand.report.write import REPORT_NAME


def show_limit(outcome: Outcome, limit: Limit, *, as_json: bool) -> int:
    """The limit, and all that was tried on the way to it."""
    if as_json:
        write_result(limit_json(limit).decode())
    else:
        write_result(rendered(lambda console: print_limit(limit, console)))
        write_result(f"Report: {outcome.folder / REPORT_NAME}")
    if outcome.summary.partial:
        say(f"withstand: {outcome.summary.partial}")
    return limit_code(limit, outcome)


def show_outcome(outcome: Outcome, *, as_json: bool) -> int:
    """Print it, and on stderr a sentence on each reason why the exit code, which is the outcome's, is not 0."""
    if as_json:
        write_result(summary_json(outcome.summary, outcome.limit).decode())
    else:
        write_result(rendered(lambda console: print_report(outcome.summary, console)))
        write_result(f"Report: {outcome.folder / REPORT_NAME}")
    for why in (outcome.missed, outcome.unmeasured):
        if why:
            say(f"withstand: {why}")
    return outcome.exit_code
