"""Where a verb's text goes: to stdout, or into the file that ``--output`` names, whose suffix may say in which form."""

from collections.abc import Mapping
from pathlib import Path

from withstand.cli.output import say, write_result
from withstand.errors import UsageError
from withstand.files import why_closed, write_atomically

_TEXT = frozenset({"", ".txt", ".text", ".log", ".out"})


def deliver(text: str, output: Path | None) -> None:
    """Print a result, or write it to a file and say so.

    Raises:
        UsageError: there is no such folder.
        StorageError: the file cannot be written.
    """
    if output is None:
        write_result(text)
    else:
        if why := why_closed(output.parent):
            raise UsageError(f"--output {output}: {output.parent} {why}.")
        if not output.parent.is_dir():
            raise UsageError(f"--output {output}: there is no folder {output.parent}.")
        write_atomically(output, text.encode())
        say(f"Written: {output}")


def form_of(output: Path | None, suffixes: Mapping[str, str]) -> str:
    """The form that a file's suffix asks for; text where it asks for none.

    Raises:
        UsageError: nothing can be written in the form that it asks for.
    """
    suffix = output.suffix.lower() if output else ""
    if suffix in _TEXT:
        return "text"
    if suffix not in suffixes:
        known = ", ".join(suffixes)
        raise UsageError(f"--output {output}: no form ends in {suffix}; end in {known} or .txt, or give --format.")
    return suffixes[suffix]
