"""The truth server for people: ``python -m withstand.testing.truth``, or ``withstand truth-server``."""

import os
import signal
import sys
from typing import Any

import click

from withstand.errors import UsageError
from withstand.testing.truth.behaviours import table
from withstand.testing.truth.config import Config
from withstand.testing.truth.schedule import Schedule
from withstand.testing.truth.server import serve_forever
from withstand.usage import run_program


def parse_behaviour(text: str) -> str | dict[str, float]:
    """``crlf``, or shares: ``plain=0.9,http_500=0.1``.

    Raises:
        UsageError: a share that is no number.
    """
    if "=" not in text:
        return text
    pairs = [pair.partition("=") for pair in text.split(",")]
    try:
        return {name.strip(): float(share) for name, _, share in pairs}
    except ValueError:
        raise UsageError(f"--behaviour: {text!r} must look like plain=0.9,http_500=0.1.") from None


@click.command("truth-server", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, help="0 = a free one.")
@click.option("--unix", metavar="PATH", help="A Unix socket instead of host and port.")
@click.option("--ttft-ms", default=50.0, show_default=True, help="From the request's last byte to the first token.")
@click.option("--itl-ms", default=10.0, show_default=True, help="From token to token.")
@click.option("--tokens", default=128, show_default=True, help="Length, where the request names none.")
@click.option("--jitter", default="none", show_default=True, help="none, exp, uniform:MS or lognormal:SIGMA.")
@click.option("--seed", default=0, show_default=True, help="Of the jitter and of a mixture.")
@click.option("--behaviour", default="plain", show_default=True, help="One, or shares: plain=0.9,http_500=0.1.")
@click.option("--slots", type=int, help="At most so many answers at once; the others queue.")
@click.option("--batch", default=0.0, help="What each answer under way adds to the ITL of a new one, as a share of it.")
@click.option("--tls", nargs=2, metavar="CERT KEY", help="PEM files.")
@click.option("--list-behaviours", is_flag=True, help="Print the table and end.")
def main(*, list_behaviours: bool, **options: Any) -> None:
    """An endpoint with an exact token schedule; GET /truth says what was really written, and when."""
    if list_behaviours:
        click.echo(table())
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # clean up as after Ctrl-C
    serve_forever(config_of(options), lambda url: click.echo(f"truth server {url} pid={os.getpid()}"))


def config_of(options: dict[str, Any]) -> Config:
    """The configuration that the options ask for."""
    certfile, keyfile = options["tls"] or (None, None)
    schedule = Schedule(
        options["ttft_ms"], options["itl_ms"], options["tokens"], options["jitter"], seed=options["seed"]
    )
    return Config(
        schedule=schedule,
        behaviour=parse_behaviour(options["behaviour"]),
        host=options["host"],
        port=options["port"],
        unix_path=options["unix"],
        certfile=certfile,
        keyfile=keyfile,
        slots=options["slots"],
        batch=options["batch"],
        seed=options["seed"],
    )


if __name__ == "__main__":
    run_program(main, sys.argv[1:], "withstand truth-server")
