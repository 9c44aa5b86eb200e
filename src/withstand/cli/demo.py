"""``withstand demo``: the embedded engine, measured in four phases."""

from pathlib import Path

import click

from withstand.app.demo import demo
from withstand.cli.options import TYPED_PATH, Between, Verb, output_options
from withstand.cli.outcome import show_outcome
from withstand.cli.screen import terminal_screen

_MINUTES = 2.5


@click.command("demo", cls=Verb)
@click.option(
    "--minutes",
    type=Between(min=0, min_open=True),
    default=_MINUTES,
    show_default=True,
    help="How long the phases may take together, once the model is there.",
)
@click.option("--output-dir", type=TYPED_PATH, metavar="DIR", help="The run's folder.")
@output_options
def verb(minutes: float, output_dir: Path | None, quiet: bool, plain: bool, as_json: bool) -> int:
    """Measure a small real model on this machine, in three minutes.

    Starts the embedded engine, then: warm-up, one request at a time with longer and longer prompts, more and more
    users at once, and requests at rates around what the engine was seen to carry.
    """
    with terminal_screen(quiet=quiet, plain=plain, blocks=not as_json) as screen:
        outcome = demo(minutes=minutes, output_dir=output_dir, screen=screen)
    return show_outcome(outcome, as_json=as_json)
