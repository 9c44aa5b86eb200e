"""One file a verb: parse, call app, print."""


def main() -> None:
    """Run the command line."""
