"""``withstand doctor``: a path to a model → what is wrong with it."""

import contextlib
from pathlib import Path
from typing import Any

import click
import msgspec

from withstand.app.doctor.examine import Means, examine, exit_code
from withstand.app.doctor.kept import encoded
from withstand.app.doctor.nginx import exit_code_of, lint_nginx
from withstand.app.doctor.patient import Dose
from withstand.app.doctor.wording import OF_URL, worded
from withstand.cli.options import TYPED_PATH, Between, Verb, key_options, quiet_option
from withstand.cli.output import rendered, say, write_result
from withstand.cli.views import Bars, is_drawable
from withstand.errors import MeasureError, UsageError
from withstand.files import is_there
from withstand.report.diagnosis_text import print_diagnosis, print_lint
from withstand.report.numbers import counted
from withstand.spec import Target, Timeouts

_GOES_ON = " …"
_SECONDS, _SECONDS_BESIDE = 60.0, 300.0


@click.command("doctor", cls=Verb)
@click.argument("url", required=False)
@click.option("--nginx", type=TYPED_PATH, metavar="FILE", help="Judge nginx's configuration instead; nothing is asked.")
@click.option("--model", metavar="NAME", help="The model to ask for. None: the first that the path lists.")
@click.option("--backend", default="openai-chat", metavar="NAME", help="openai-chat (default), openai or vllm.")
@key_options
@click.option("--cacert", metavar="FILE", help="The certificate of the authority to trust.")
@click.option("--direct", metavar="URL", help="The engine itself: what the hop costs, and whether it stops working.")
@click.option("--direct-api-key-env", metavar="VARIABLE", help="The engine's own key; the path's does not go to it.")
@click.option("--echo", is_flag=True, help="Start an echo engine, which you put behind the path.")
@click.option(
    "--echo-at", metavar="HOST:PORT", help="Where it listens; default: a free port of 127.0.0.1, as port 0 says."
)
@click.option("--tokens", default=96, type=click.IntRange(min=16, max=4096), help="Of a long answer; 96 by default.")
@click.option("--pairs", default=40, type=click.IntRange(min=6, max=10000), help="With and without the hop; 40.")
@click.option("--seconds", type=Between(min=1), help="At most so long: 60; 300 with --direct or --echo.")
@quiet_option
@click.option("--json", "as_json", is_flag=True, help="The diagnosis as JSON.")
def verb(*, url: str | None, nginx: Path | None, quiet: bool, as_json: bool, **options: Any) -> int:
    """Examine a path: does it stream, keep fields and errors, stop when told.

    URL is the address of anything that speaks OpenAI's API: a gateway, a proxy, an engine. It is asked some 35 short
    requests, one at a time, and with --direct or --echo two for each of --pairs more. Exit code 0: nothing is wrong; 1:
    something is; 3: it could not be examined, or a limit or a Ctrl-C stopped it.
    """
    if url is None and nginx is None:
        raise UsageError("Name what to examine: a URL, or --nginx FILE.")
    if url is not None and nginx is not None:
        raise UsageError("A URL and --nginx are two examinations; give one of the two.")
    if url and is_there(Path(url)):
        raise UsageError(
            f"URL: {url} is a path. `withstand up {url} --check` asks a stack's engines whether they know their "
            "options; --nginx judges nginx's configuration."
        )
    if nginx:
        return _lint(nginx, as_json=as_json)
    seconds = options["seconds"] or (_SECONDS_BESIDE if options["direct"] or options["echo"] else _SECONDS)
    timeouts = _timeouts(seconds)
    target = Target(
        base_url=url,
        model=options["model"],
        backend=options["backend"],
        api_key_env=options["api_key_env"],
        api_key_file=options["api_key_file"],
        cacert=options["cacert"],
        timeouts=timeouts,
    )
    means = _means(options, seconds, timeouts)
    with worded(OF_URL), contextlib.closing(Told(quiet=quiet)) as told:
        try:
            diagnosis = examine(target, means, told.tell, told.asking)
        except KeyboardInterrupt:
            raise MeasureError("Interrupted before anything was found.") from None
    if as_json:
        write_result(encoded(diagnosis).decode())
    else:
        write_result(rendered(lambda console: print_diagnosis(diagnosis, console)))
    if diagnosis.stopped:
        say(f"withstand: {diagnosis.stopped}")
    return exit_code(diagnosis)


class Told:
    """What is being examined: a line each, and on a terminal a bar, with the number of requests so far."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bars = Bars() if is_drawable() and not quiet else None
        self._asked = 0

    def tell(self, text: str) -> None:
        """A chapter begins (``How answers come …``), or a sentence that is to stay."""
        if self._quiet:
            return
        if self._bars is None:
            say(text)
        elif text.endswith(_GOES_ON):
            self._bars.begin(text.removesuffix(_GOES_ON))
        else:
            self._bars.message(text)

    def asking(self) -> None:
        """One more request goes out."""
        self._asked += 1
        if self._bars:
            self._bars.update(None, counted(self._asked, "request"), 0.0)

    def close(self) -> None:
        """Give the line back."""
        if self._bars:
            self._bars.end()


def _lint(path: Path, *, as_json: bool) -> int:
    findings = lint_nginx(path)
    if as_json:
        write_result(msgspec.json.format(msgspec.json.encode(findings), indent=2).decode())
    else:
        write_result(rendered(lambda console: print_lint(findings, console)))
    return exit_code_of(findings)


def _timeouts(seconds: float) -> Timeouts:
    """Patient with a slow engine, but not for ever with a silent one."""
    return Timeouts(connect_s=min(10.0, seconds), read_s=min(60.0, seconds), total_s=min(180.0, seconds))


def _means(options: dict[str, Any], seconds: float, timeouts: Timeouts) -> Means:
    if options["echo"] and options["direct"]:
        raise UsageError("--echo and --direct: behind the path stands one engine; give one of the two.")
    direct = None
    if options["direct"]:
        direct = Target(
            base_url=options["direct"],
            backend=options["backend"],
            api_key_env=options["direct_api_key_env"],
            cacert=options["cacert"],
            timeouts=timeouts,
        )
    if options["echo_at"] and not options["echo"]:
        raise UsageError("--echo-at is where the engine of --echo listens; give that too.")
    echo = _place(options["echo_at"] or "127.0.0.1:0") if options["echo"] else None
    dose = Dose(tokens=options["tokens"], pairs=options["pairs"], seconds=seconds)
    return Means(direct=direct, echo=echo, dose=dose)


def _place(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--echo-at: {text!r} is no HOST:PORT, such as 127.0.0.1:9000.")
    return host.strip("[]") or "127.0.0.1", int(port)
