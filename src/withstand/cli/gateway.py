"""``withstand gateway``: hands over to the gateway's own program, which knows its options."""

import os
import signal
import sys

import click


@click.command("gateway", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def verb(options: tuple[str, ...]) -> None:
    """Serve models of one or many engines behind one address.

    The command line may not import what it measures, so the gateway takes over this process.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # one that comes too early waits until it can be heard
    program = [sys.executable, "-P", "-m", "withstand.huge_pages", "withstand.gateway"]
    os.execv(sys.executable, [*program, *options])  # noqa: S606  our own module
