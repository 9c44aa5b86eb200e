"""Options that several verbs share, in groups. Their names are those of ``vllm bench serve`` where it has one.

None of them has a default here: what is not given is the plan file's, or else the plan's own default.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from withstand.app.prices import price_of, token_price_of
from withstand.cli.times import SECONDS, SECONDS_OR_NONE, WITH_UNIT
from withstand.interop import values
from withstand.spec import CONCURRENCY_MAX, PROMPTS_MAX, TOKENS_MAX, TokenPrice

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Decorator = Callable[[Any], Any]

_COUNT = click.IntRange(min=1)
_WORKERS = click.IntRange(1, 256)
_TOKENS = click.IntRange(1, TOKENS_MAX)


class _TypedPath(click.Path):
    """An empty one is a variable that nobody has set; click would take it for the folder that we are in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("an empty path names nothing; the folder that you are in is `.`.", param, ctx)
        return super().convert(value, param, ctx)


class Between(click.FloatRange):
    """NaN is neither below nor above: click would let it pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{str(value)!r} is no number; give one, such as 5.", param, ctx)
        return number


TYPED_PATH = _TypedPath(path_type=Path)
_OTHERS = "Options"


class _Headed(click.Option):
    """An option that the help lists under a heading."""

    def __init__(self, *names: Any, heading: str, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.heading = heading


class Verb(click.Command):
    """A command whose help lists options under headings, and whose mistakes name it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """What takes several values with commas is given once; elsewhere the last one holds, as in any shell."""
        try:
            _, _, given = self.make_parser(ctx).parse_args(list(args))
            _refuse_twice(given)
            return super().parse_args(ctx, args)
        except click.UsageError as e:  # the parser does not say whose
            e.ctx = e.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One section a heading, in the order of their first options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            line = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if line:
                sections.setdefault(getattr(parameter, "heading", _OTHERS), []).append(line)
        for heading, lines in sections.items():
            with formatter.section(heading):
                formatter.write_dl(lines)


def _refuse_twice(given: Sequence[click.Parameter]) -> None:
    for option, times in Counter(each for each in given if isinstance(each, click.Option)).items():
        if times > 1 and not option.multiple and "," in (option.metavar or ""):
            raise click.UsageError(
                f"Option '{option.opts[-1]}' stands there {times} times; give it once, several values with commas"
            )


def _option(heading: str, names: str, help_text: str, metavar: str | None = None, **attributes: Any) -> _Decorator:
    return click.option(*names.split(), cls=_Headed, heading=heading, help=help_text, metavar=metavar, **attributes)


def _all_of(options: Sequence[_Decorator]) -> Callable[[_Function], _Function]:
    """A decorator that adds them in the order given."""

    def decorate(function: _Function) -> _Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_TARGET = "Target"
_KEY = (
    _option(_TARGET, "--api-key-env", "The environment variable that holds the key.", "VARIABLE"),
    _option(_TARGET, "--api-key-file", "The file that holds the key.", "FILE"),
)

key_options = _all_of(_KEY)
target_options = _all_of(
    [
        _option(
            _TARGET,
            "--base-url",
            "http(s)://host:port, with or without /v1, or unix:/path. None: the embedded engine.",
            "URL",
        ),
        _option(_TARGET, "--backend", "The dialect: openai-chat (default); openai or vllm for completions.", "NAME"),
        _option(_TARGET, "--endpoint", "The path, where it is not the dialect's own.", "PATH"),
        _option(_TARGET, "--model", "The model to ask for. None: the first that the endpoint lists.", "NAME"),
        *_KEY,
        _option(_TARGET, "--header", "A header for every request; again for more.", "NAME=VALUE", multiple=True),
        _option(_TARGET, "--cacert", "The certificate of the authority to trust.", "FILE"),
        _option(_TARGET, "--insecure", "Trust any certificate.", is_flag=True, default=None),
        _option(
            _TARGET,
            "--metrics-url",
            "A Prometheus endpoint of the server; again for more. None: the target's /metrics.",
            "URL",
            multiple=True,
        ),
        _option(
            _TARGET,
            "--scrape-interval",
            "Seconds between two looks at the server's metrics and the machine; 1 by default, 0 = never.",
            "SECONDS",
            type=Between(0, 3600),
        ),
    ]
)

_WORKLOAD = "Workload"

workload_options = _all_of(
    [
        _option(_WORKLOAD, "--dataset-name", "Where prompts come from: random (default), sharegpt, …", "NAME"),
        _option(_WORKLOAD, "--dataset-path", "The dataset's file.", "FILE"),
        _option(
            _WORKLOAD,
            "--num-prompts",
            "Prompts a stage; 100 by default.",
            "N",
            type=click.IntRange(1, PROMPTS_MAX),
        ),
        _option(_WORKLOAD, "--input-len", "Tokens a prompt, for datasets that make prompts up.", "N", type=_TOKENS),
        _option(_WORKLOAD, "--output-len", "Tokens an answer.", "N", type=_TOKENS),
        _option(
            _WORKLOAD,
            "--seed",
            "The same seed gives the same requests at the same times. None: the words are each run's own.",
            "N",
            type=int,
        ),
        _option(_WORKLOAD, "--same-prompts", "Send the prompts of every run that says so.", is_flag=True, default=None),
        _option(
            _WORKLOAD,
            "--tokenizer",
            "Who counts: auto (default), engine, tiktoken, estimate, or a tokenizer.json.",
            "NAME|FILE",
        ),
    ]
)

_LOAD = "Load"

load_options = _all_of(
    [
        _option(
            _LOAD, "--request-rate", "Requests a second, or inf (default). Several rates are stages.", "R[,R…]|inf"
        ),
        _option(_LOAD, "--max-concurrency", "The most requests at once. Several numbers are stages.", "C[,C…]"),
        _option(
            _LOAD, "--burstiness", "1 (default): Poisson arrivals. Below burstier, above steadier.", "SHAPE", type=float
        ),
        _option(
            _LOAD,
            "--duration",
            "Send nothing after this time, then wait for what runs: 90, 90s, 5m.",
            "TIME",
            type=SECONDS,
        ),
        _option(
            _LOAD,
            "--num-warmups",
            "Requests sent first and left out of every number; 1 by default.",
            "N",
            type=click.IntRange(0, CONCURRENCY_MAX),
        ),
        _option(
            _LOAD,
            "--preconnect",
            "Connections that are opened before each stage begins; 0 by default.",
            "N",
            type=click.IntRange(0, CONCURRENCY_MAX),
        ),
        _option(_LOAD, "--workers", "Processes that send. None: chosen from the load.", "N", type=_WORKERS),
        _option(_LOAD, "--fleet", "Where they run: local (default), ray, or ray://HOST:PORT.", "PLACE"),
    ]
)


_COST = "Cost"
_MONEY = {"callback": lambda _context, _option, value: None if value is None else price_of(value)}


def _token_price(_context: click.Context, _option: click.Parameter, value: str | None) -> TokenPrice | None:
    return None if value is None else token_price_of(value)


price_options = _all_of(
    [
        _option(_COST, "--price-per-hour", "What an hour of all that serves costs.", "X", **_MONEY),
        _option(
            _COST,
            "--against-token-price",
            "What a million tokens cost elsewhere: adds from which load on the machine is cheaper.",
            "IN:OUT[:CACHED]",
            callback=_token_price,
        ),
    ]
)
day_options = _all_of(
    [
        _option(_COST, "--price-per-gpu-hour", "The same of one GPU.", "X", **_MONEY),
        _option(_COST, "--gpus", "How many. None: those that were seen to be in use.", "N", type=_COUNT),
        _option(_COST, "--price-per-kwh", "Power that the hour's price does not contain.", "X", **_MONEY),
        _option(_COST, "--busy-hours", "Of a day, in which requests come; 24 by default.", "H", type=float),
        _option(_COST, "--requests-per-day", "None: as many as the machine sustains.", "N", type=float),
        _option(_COST, "--idle-timeout", "It is given back after this; 300s by default.", "TIME", type=SECONDS_OR_NONE),
        _option(_COST, "--cold-start", "None: what the embedded engine took.", "TIME", type=SECONDS_OR_NONE),
    ]
)


def percentage(text: str) -> float | None:
    """``5%``, ``5 %`` or ``5``; None = it is none."""
    number = values.number(text.rstrip("% "))
    return None if number is None or number < 0 else number


budget_option = click.option(
    "--budget",
    "budget_s",
    metavar="TIME",
    type=WITH_UNIT,
    help="All stages within this time: 90s, 20m, 1.5h. Durations are scaled down; what does not fit is left out.",
)

quiet_option = _option(_OTHERS, "--quiet", "No progress on stderr.", is_flag=True)
output_options = _all_of(
    [
        quiet_option,
        _option(_OTHERS, "--plain", "Progress as lines, also on a terminal.", is_flag=True),
        _option(_OTHERS, "--json as_json", "Print summary.json instead of text.", is_flag=True),
    ]
)
