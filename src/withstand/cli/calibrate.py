"""``withstand calibrate``: what this client is good for on this machine."""

import click

from withstand.app.calibrate import SECONDS, calibrate
from withstand.app.calibration.store import keep
from withstand.cli.options import Between, Verb
from withstand.cli.output import say, write_result
from withstand.cli.views import view
from withstand.metrics.calibration import Load
from withstand.report.calibration import calibration_json, calibration_text

_NOT_MEASURED = 3


@click.command("calibrate", cls=Verb)
@click.option(
    "--seconds",
    type=Between(min=1, max=600),
    default=SECONDS,
    show_default=True,
    help="About how long it may take; longer finds the limit more finely.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def verb(seconds: float, form: str, quiet: bool) -> int:
    """Find out what this client is good for on this machine.

    Real workers load a null server, whose answers cost nothing, harder and harder until the client's own limits are
    met. Where they are found they are kept, and `withstand run` warns beforehand of a plan that asks for more.
    """
    drawn_on = view(quiet=quiet)

    def hear(load: Load, share: float) -> None:
        drawn_on.begin(f"Calibrating: {load.rate:,.0f} {'tokens' if load.streamed else 'requests'}/s")
        drawn_on.update(share, "", 0.0)

    try:
        calibration = calibrate(seconds=seconds, listener=hear)
    finally:
        drawn_on.end()
    write_result(calibration_json(calibration).decode() if form == "json" else calibration_text(calibration))
    if calibration.whole and (path := keep(calibration)):
        say(f"Kept for later runs: {path}")
    return 0 if calibration.whole else _NOT_MEASURED
