"""The agent for people: ``python -m withstand.agent``, or ``withstand agent``."""

import os
from pathlib import Path
from typing import Any

import click

from withstand.agent.config import Config, config_from_file, config_of
from withstand.errors import UsageError, WithstandError


@click.command("agent", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--listen", metavar="HOST:PORT", help="Instead of the file's; port 0 = a free one.")
@click.option("--model", help="Without a file: the model's name.")
@click.option("--base-url", metavar="URL", help="Without a file: where the model is served.")
@click.pass_context
def main(context: click.Context, /, **options: Any) -> None:
    """Serve an agent with tools behind an OpenAI-compatible address."""
    try:
        _serve(_config(**options))
    except WithstandError as e:
        click.echo(f"withstand: {e}", err=True)
        context.exit(e.exit_code)


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


def _serve(config: Config) -> None:
    try:
        from withstand.agent.server import serve_forever  # noqa: PLC0415  --help does without the extra
    except ModuleNotFoundError as e:
        raise UsageError(f"The agent needs {e.name}: pip install 'withstand[agent]'.") from None
    serve_forever(config, lambda url: click.echo(f"withstand agent {url} pid={os.getpid()}"))


if __name__ == "__main__":
    main(prog_name="withstand agent")
