"""Where a verb's text goes: to stdout, or into the file that ``--output`` names, whose suffix may say in which form."""

from collections.abc import Mapping
from pathlib import Path

from withstand.cli.output import say, write_result
from withstand.files import write_atomically


def deliver(text: str, output: Path | None) -> None:
    """Print a result, or write it to a file and say so.

    Raises:
        StorageError: the file cannot be written.
    """
    if output is None:
        write_result(text)
    else:
        write_atomically(output, text.encode())
        say(f"Written: {output}")


def form_of(output: Path | None, suffixes: Mapping[str, str]) -> str:
    """The form that a file's suffix asks for; text where it asks for none."""
    return suffixes.get(output.suffix.lower(), "text") if output else "text"
