"""The gateway for people: ``python -m withstand.gateway``, or ``withstand gateway``."""

import os
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from withstand.errors import UsageError, WithstandError
from withstand.gateway.config import Config, config_from_file, config_of
from withstand.gateway.roster import Roster
from withstand.gateway.waiting import Lobby


class _Gateway(click.Command):
    """One command, but for its first word."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        """``check FILE`` is another one."""
        words = list(sys.argv[1:] if args is None else args)
        if words[:1] == ["check"]:
            return check.main(words[1:], *more, **extra)
        return super().main(words, *more, **extra)


@click.command("gateway", cls=_Gateway, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--listen", metavar="HOST:PORT", help="Instead of the file's; port 0 = a free one.")
@click.option("--model", help="Without a file: the model's name.")
@click.option("--engine", "engines", multiple=True, metavar="URL", help="Without a file: an engine of it; repeatable.")
@click.pass_context
def main(context: click.Context, /, **options: Any) -> None:
    """Serve models of one or many engines behind one address.

    `withstand gateway check FILE` only says whether a configuration is good.
    """
    try:
        _serve(lambda: _config(**options), rereads=options["config"] is not None)
    except WithstandError as e:
        click.echo(f"withstand: {e}", err=True)
        context.exit(e.exit_code)


@click.command("check", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_context
def check(context: click.Context, /, file: Path) -> None:
    """Say whether the gateway would go by a configuration; nothing is started or changed."""
    try:
        Roster(config_from_file(file), random.Random(), Lobby(lambda _: None))
    except WithstandError as e:
        click.echo(f"withstand: {e}", err=True)
        context.exit(e.exit_code)
    click.echo(f"{file} is good.")


def _config(config: Path | None, listen: str | None, model: str | None, engines: tuple[str, ...]) -> Config:
    if config is not None and (model or engines):
        raise UsageError(
            "--model and --engine describe a gateway without a file; put them into the file, or leave it out."
        )
    if config is None and not (model and engines):
        raise UsageError("Name a configuration file, or a model and its engines: --model NAME --engine URL.")
    if config is None:
        told = {"models": {model: {"engines": [{"url": url} for url in engines]}}}
        return config_of(told if listen is None else {**told, "listen": listen})
    return config_from_file(config, listen)


def _serve(read: Callable[[], Config], *, rereads: bool) -> None:
    config = read()
    try:
        from withstand.gateway.server import Said, serve_forever  # noqa: PLC0415  --help does without the extra
    except ModuleNotFoundError as e:
        raise UsageError(f"The gateway needs {e.name}: pip install 'withstand[gateway]'.") from None
    said = Said(
        ready=lambda url: click.echo(f"withstand gateway {url} pid={os.getpid()}"),
        wrong=lambda what: click.echo(f"withstand: {what}", err=True),
    )
    serve_forever(config, said, read if rereads else None)


if __name__ == "__main__":
    main(prog_name="withstand gateway")
