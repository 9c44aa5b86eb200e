"""The agent for people: ``python -m withstand.agent``, or ``withstand agent``."""

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from withstand.agent.config import Config, config_from_file, config_of
from withstand.errors import UsageError, extra
from withstand.usage import run_program

_NEEDS = f"The agent needs {{}}: {extra('agent')}."


@click.command("agent", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--listen", metavar="HOST:PORT", help="Instead of the file's; port 0 = a free one.")
@click.option("--model", help="Without a file: the model's name.")
@click.option("--base-url", metavar="URL", help="Without a file: where the model is served.")
def main(**options: Any) -> None:
    """Serve an agent with tools behind an OpenAI-compatible address.

    Only to see whether a file is good: withstand agent check FILE.
    """
    _serve(_config(**options))


@click.command("check", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Say whether the agent would start with a configuration; nothing is started, changed or asked."""
    _check(config_from_file(file))
    click.echo(f"{file} is good.")


def _config(config: Path | None, listen: str | None, model: str | None, base_url: str | None) -> Config:
    if config is not None and (model or base_url):
        raise UsageError(
            "--model and --base-url describe an agent without a file; put them into the file, or leave it out."
        )
    if config is None and not (model and base_url):
        raise UsageError("Name a configuration file, or a model and its address: --model NAME --base-url URL.")
    if config is None:
        told = {"model": {"name": model, "base_url": base_url}}
        return config_of(told if listen is None else {**told, "listen": listen})
    return config_from_file(config, listen)


def _check(config: Config) -> None:
    try:
        from withstand.agent.server import check_unchanged  # noqa: PLC0415  --help does without the extra
    except ModuleNotFoundError as e:
        raise UsageError(_NEEDS.format(e.name)) from None
    check_unchanged(config)


def _serve(config: Config) -> None:
    try:
        from withstand.agent.server import serve_forever  # noqa: PLC0415  --help does without the extra
    except ModuleNotFoundError as e:
        raise UsageError(_NEEDS.format(e.name)) from None
    serve_forever(config, lambda url: click.echo(f"withstand agent {url} pid={os.getpid()}"))


def run(arguments: list[str]) -> NoReturn:
    """What is not a verb is for the agent itself."""
    if arguments[:1] == ["check"]:
        run_program(check, arguments[1:], "withstand agent check")
    run_program(main, arguments, "withstand agent")


if __name__ == "__main__":
    run(sys.argv[1:])
