"""``withstand truth-server``: hands over to the server's own program, which knows its options."""

import os
import sys

import click


@click.command("truth-server", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def verb(options: tuple[str, ...]) -> None:
    """Serve answers at known times, to prove a client's numbers.

    The command line may not import what it is tested with, so the server takes over this process.
    """
    os.execv(sys.executable, [sys.executable, "-P", "-m", "withstand.testing.truth", *options])  # noqa: S606  our own module
