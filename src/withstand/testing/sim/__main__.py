"""The simulated engine as a process: ``python -m withstand.testing.sim --help``."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from withstand.sim import Parameters, parameters_from_file, simulated_name
from withstand.sim.parameters import parameters_of
from withstand.testing.sim.server import SimServer
from withstand.testing.truth.clockwork import Clockwork
from withstand.testing.truth.config import Config
from withstand.testing.truth.server import prepare_process
from withstand.usage import run_program


@click.command("sim", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, help="0 = a free one.")
@click.option("--model", help="The model's name; `simulated-` is put before it.")
@click.option("--parameters", type=click.Path(path_type=Path), help="What `withstand fit --output` has written.")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="One parameter; again for more.")
def main(**options: Any) -> None:
    """A queueing model of an engine, served as one. Nothing is computed: its answers are made-up words."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        parameters = parameters_told(options["parameters"], options["changes"])
        serve(Config(host=options["host"], port=options["port"]), parameters, simulated_name(options["model"]))
    except KeyboardInterrupt:
        return


def parameters_told(path: Path | None, changes: tuple[str, ...]) -> Parameters:
    """Those of a file, or the defaults, with changes laid over them.

    Raises:
        UsageError: a key or a value is wrong.
    """
    told: dict[str, Any] = msgspec.to_builtins(parameters_from_file(path) if path else Parameters())
    for change in changes:
        key, _, value = change.partition("=")
        try:
            told[key] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            told[key] = value
    return parameters_of(told, "--set")


def serve(config: Config, parameters: Parameters, model: str) -> None:
    """Until interrupted.

    Raises:
        UsageError: the address cannot be had.
    """
    clockwork = Clockwork()
    server = SimServer(config, parameters, clockwork, model)
    try:
        prepare_process()
        click.echo(f"simulated engine {server.base_url} model={model} pid={os.getpid()}")
        clockwork.run()
    finally:
        server.close()
        clockwork.close()


if __name__ == "__main__":
    run_program(main, sys.argv[1:], "python -m withstand.testing.sim")
