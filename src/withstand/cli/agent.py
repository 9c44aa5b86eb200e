"""``withstand agent``: hands over to the agent's own program, which knows its options."""

import os
import sys

import click


@click.command("agent", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def verb(options: tuple[str, ...]) -> None:
    """Serve an agent with tools behind an OpenAI-compatible address.

    The command line may not import what it measures, so the agent takes over this process.
    """
    os.execv(sys.executable, [sys.executable, "-P", "-m", "withstand.agent", *options])  # noqa: S606  our own module
