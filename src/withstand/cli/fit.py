"""``withstand fit``: run folders → the parameters of a simulated engine."""

from pathlib import Path

import click

from withstand.app.fit import fitted_runs
from withstand.cli.delivery import deliver
from withstand.cli.options import TYPED_PATH, Verb
from withstand.cli.output import write_result
from withstand.report.fit import fit_text, fit_toml


@click.command("fit", cls=Verb)
@click.argument("paths", metavar="RUN_DIR…", nargs=-1, required=True, type=TYPED_PATH)
@click.option("--output", type=TYPED_PATH, metavar="FILE", help="Write the model there, for an engine of kind sim.")
def verb(paths: tuple[Path, ...], output: Path | None) -> None:
    """Make a model of the engine that runs have measured, and say how far off it is.

    The runs must have loads that differ: --max-concurrency 1,4 or several rates. What they cannot tell is refused.
    """
    fit = fitted_runs(paths)
    write_result(fit_text(fit))
    if output is not None:
        deliver(fit_toml(fit), output)
