"""``withstand export``: a stack as files for other places to run it."""

from pathlib import Path

import click

from withstand.cli.options import TYPED_PATH, Verb
from withstand.cli.output import say, write_result
from withstand.errors import UsageError
from withstand.files import storage_error
from withstand.spec.mistake import of_file
from withstand.spec.stack import stack_from_file
from withstand.stack.exports.table import PLACES, exported, left_out


@click.command("export", cls=Verb)
@click.argument("path", metavar="STACK.toml", type=TYPED_PATH)
@click.option("--to", "place", required=True, type=click.Choice(list(PLACES)), help="Who shall run it.")
@click.option("--output", metavar="DIR", type=TYPED_PATH, help="Write the files there; else the main one is printed.")
@click.option("--inference-gateway", metavar="NAME", help="Kubernetes: pools behind this Gateway choose the pod.")
def verb(path: Path, place: str, output: Path | None, inference_gateway: str | None) -> None:
    """Write a stack as files of compose, Kubernetes, Ray Serve, KubeRay or Modal.

    Each service's `deploy` says with which image, on how many GPUs, and how many replicas. Nothing is asked or started.
    """
    stack = stack_from_file(path)
    with of_file(path, f"cannot be exported to {place}"):
        files = exported(stack, place, inference_gateway)
    if missing := left_out(stack, place):
        say("\n".join(f"Not exported to {place}: {part}; {instead}." for part, instead in missing.items()))
    if output is None:
        write_result(next(iter(files.values())))
        return
    _write(files, output)
    say(f"{output}: {', '.join(files)}")


def _write(files: dict[str, str], folder: Path) -> None:
    if folder.is_file():
        raise UsageError(f"--output: {folder} is a file; name a folder.")
    try:
        for name, text in files.items():
            at = folder / name
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text, "utf-8")
    except OSError as e:
        raise storage_error(folder, e) from None
