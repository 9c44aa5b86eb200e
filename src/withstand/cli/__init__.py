"""The command line: one file a verb, but for ``programs``.

It parses, calls the app, prints; errors become one sentence and an exit code.
"""

import sys

INTERRUPTED = 130  # what a shell expects after Ctrl-C: 128 + SIGINT


def main() -> None:
    """Run the command line. Who presses Ctrl-C while it is still being read from disk sees no traceback either."""
    try:
        from withstand.cli.programs import hand_over  # noqa: PLC0415  within the net

        hand_over(sys.argv[1:])
        from withstand.cli.entry import main as enter  # noqa: PLC0415  within the net

        enter()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
