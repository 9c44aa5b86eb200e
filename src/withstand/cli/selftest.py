"""``withstand selftest``: hands over to the test's own program, which knows its options."""

import os
import sys

import click


@click.command("selftest", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def verb(options: tuple[str, ...]) -> None:
    """Prove this client's numbers on this machine, in some seconds.

    The command line may not import what it is tested with, so the test takes over this process.
    """
    os.execv(sys.executable, [sys.executable, "-P", "-m", "withstand.testing.selftest", *options])  # noqa: S606  our own module
