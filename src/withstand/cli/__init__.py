"""The command line: one file a verb. It parses, calls the app, prints; errors become one sentence and an exit code."""

import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line. Who presses Ctrl-C while it is still being read from disk sees no traceback either."""
    try:
        from withstand.cli.entry import main as enter  # noqa: PLC0415  within the net
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    enter()
