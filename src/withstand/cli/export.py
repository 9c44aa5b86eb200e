"""``withstand export``: a stack as files for other places to run it."""

from pathlib import Path

import click

from withstand.cli.options import TYPED_PATH, Verb
from withstand.cli.output import say, write_result
from withstand.errors import UsageError
from withstand.files import storage_error
from withstand.spec.mistake import of_file
from withstand.spec.stack import stack_from_file
from withstand.stack.exports.table import PLACES, exported, left_out, without_gpu
from withstand.stack.exports.told import not_there
from withstand.stack.settled import settled, with_variables_of_keys


@click.command("export", cls=Verb)
@click.argument("path", metavar="STACK.toml", type=TYPED_PATH)
@click.option("--to", "place", required=True, type=click.Choice(list(PLACES)), help="Who shall run it.")
@click.option("--output", metavar="DIR", type=TYPED_PATH, help="Write the files there; else the main one is printed.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
@click.option("--inference-gateway", metavar="NAME", help="Kubernetes: pools behind this Gateway choose the pod.")
def verb(path: Path, place: str, output: Path | None, inference_gateway: str | None, *, force: bool) -> None:
    """Write a stack as files of compose, Kubernetes, Ray Serve, KubeRay or Modal.

    Each service's `deploy` says with which image, on how many GPUs, and how many replicas. Nothing is asked or started.
    """
    stack = with_variables_of_keys(settled(stack_from_file(path), path.parent))
    with of_file(path, f"cannot be exported to {place}"):
        files = exported(stack, place, inference_gateway)
    if missing := left_out(stack, place):
        say("\n".join(not_there(place, missing)))
    for doubt in without_gpu(stack):
        say(doubt)
    if output is None:
        write_result(next(iter(files.values())))
        return
    _write(files, output, force=force)
    say(f"{output}: {', '.join(files)}")


def _write(files: dict[str, str], folder: Path, *, force: bool) -> None:
    if folder.is_file():
        raise UsageError(f"--output: {folder} is a file; name a folder.")
    if not force and (others := [name for name, text in files.items() if _has_another(folder / name, text)]):
        raise UsageError(
            f"--output: {folder} has another {', '.join(others)} already; name a new folder, or say --force."
        )
    try:
        for name, text in files.items():
            at = folder / name
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text, "utf-8")
    except OSError as e:
        raise storage_error(folder, e) from None


def _has_another(path: Path, text: str) -> bool:
    """Whether something would be lost."""
    try:
        return path.exists() and path.read_bytes() != text.encode()
    except OSError:
        return True
