"""The command line: one file a verb. It parses, calls the app, prints; errors become one sentence and an exit code."""

from withstand.cli.entry import main

__all__ = ["main"]
