"""The gateway for people: ``python -m withstand.gateway``, or ``withstand gateway``."""

import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from withstand.errors import UsageError, extra
from withstand.gateway.config import Config, config_from_file, config_of, of_file
from withstand.gateway.key_verbs import keys
from withstand.gateway.keys import Keyring
from withstand.gateway.preflight import preflight
from withstand.gateway.roster import Roster
from withstand.gateway.telling import open_standard, tell
from withstand.gateway.waiting import Lobby
from withstand.hints import near
from withstand.usage import run_program


@click.command("gateway", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--listen", metavar="HOST:PORT", help="Instead of the file's; port 0 = a free one.")
@click.option("--workers", type=click.IntRange(1, 64), help="Instead of the file's: processes that serve.")
@click.option("--model", help="Without a file: the model's name.")
@click.option("--engine", "engines", multiple=True, metavar="URL", help="Without a file: an engine of it; repeatable.")
@click.pass_context
def main(context: click.Context, /, **options: Any) -> None:
    """Serve models of one or many engines behind one address.

    Only to see whether a file is good: withstand gateway check FILE. Keys for clients: withstand gateway keys --help.
    """
    given = {name: told for name in ("listen", "workers") if (told := options.pop(name)) is not None}
    context.exit(_serve(lambda: _config(**options, instead=given), rereads=options["config"] is not None))


@click.command("check", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Say whether the gateway would start with a configuration; nothing is started, changed or asked."""
    config = config_from_file(file)
    with of_file(file):
        Keyring(config.keys, local=True)
        Roster(config, random.Random(), Lobby(lambda _: None))
        notes = preflight(config)
    for note in notes:
        click.echo(f"withstand: {note}", err=True)
    click.echo(f"{file} is good.")


def _config(config: Path | None, model: str | None, engines: tuple[str, ...], instead: dict[str, object]) -> Config:
    if config is not None and (model or engines):
        raise UsageError(
            "--model and --engine describe a gateway without a file; put them into the file, or leave it out."
        )
    if config is None and not (model and engines):
        raise UsageError("Name a configuration file, or a model and its engines: --model NAME --engine URL.")
    if config is None:
        return config_of({"models": {model: {"engines": [{"url": url} for url in engines]}}, **instead})
    return config_from_file(config, **instead)


def _serve(read: Callable[[], Config], *, rereads: bool) -> int:
    """The exit code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # until somebody listens; it would end the process
    config = read()
    sys.modules.setdefault("pydantic.v1", None)  # type: ignore[arg-type]  # else FastAPI loads it, to find nothing of it
    try:
        from withstand.gateway.server import Said, serve_forever  # noqa: PLC0415  --help does without the extra
    except ModuleNotFoundError as e:
        raise UsageError(f"The gateway needs {e.name}: {extra('gateway')}.") from None
    said = Said(
        ready=lambda url: click.echo(f"withstand gateway {url} pid={os.getpid()}"),
        told=tell,
    )
    return serve_forever(config, said, read if rereads else None)


def run(arguments: list[str]) -> NoReturn:
    """What is not a verb is for the gateway itself."""
    open_standard()
    verb = _VERBS.get(arguments[0]) if arguments else None
    if verb is None and _is_mistyped(arguments):
        run_program(click.Group("gateway", _VERBS), arguments, "withstand gateway")  # which knows of no other
    if verb is None:
        run_program(main, arguments, "withstand gateway")
    run_program(verb, arguments[1:], f"withstand gateway {arguments[0]}")


def _is_mistyped(arguments: list[str]) -> bool:
    """It is nearly a verb, and no file, which would be named like one."""
    return (
        bool(arguments)
        and arguments[0].isalpha()
        and bool(near(arguments[0], _VERBS))
        and not os.path.lexists(arguments[0])
    )


_VERBS: dict[str, click.Command] = {"check": check, "keys": keys}


if __name__ == "__main__":
    run(sys.argv[1:])
