"""The self-test for people: ``withstand selftest``, or ``python -m withstand.testing.selftest``."""

import os
import shutil
import signal
import sys

import click

from withstand.testing.selftest.cases import chosen
from withstand.testing.selftest.proof import Proof, prove
from withstand.testing.selftest.show import json_text, markdown, text
from withstand.usage import run_program

_NOT_RIGHT = 3
_WIDTH_MIN, _WIDTH_MAX = 80, 110


@click.command("selftest", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", multiple=True, metavar="NAME", help="This behaviour, with every value; again for more.")
@click.option(
    "--answers", type=click.IntRange(3, 1000), default=5, show_default=True, help="Answers to each behaviour."
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", help="text by default."
)
@click.pass_context
def main(context: click.Context, only: tuple[str, ...], answers: int, form: str) -> None:
    """Play every behaviour of a server against this client, on this machine, and compare its numbers with the truth.

    Exit code 0: all is right; 3: something is not, or the machine was too busy to prove it.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # clean up as after Ctrl-C
    proof = prove(chosen(only), answers)
    click.echo(_shown(proof, form, detailed=bool(only)))
    context.exit(0 if proof.ok else _NOT_RIGHT)


def _shown(proof: Proof, form: str, *, detailed: bool) -> str:
    if form == "json":
        return json_text(proof)
    if form == "markdown":
        return markdown(proof)
    return text(proof, _width(), detailed=detailed)


def _width() -> int:
    """The terminal's, within reason; into a file or a pipe it is wide."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return _WIDTH_MAX
    return min(max(shutil.get_terminal_size().columns, _WIDTH_MIN), _WIDTH_MAX)


if __name__ == "__main__":
    run_program(main, sys.argv[1:], "withstand selftest")
