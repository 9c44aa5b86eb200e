"""The whole examination: what is asked, in which order, and a diagnosis of it."""

import contextlib
import functools
from collections.abc import Callable, Iterator

import msgspec

from withstand import __version__, clock
from withstand.app.doctor.arrivals import examine_arrivals
from withstand.app.doctor.costs import costs_load, examine_costs
from withstand.app.doctor.courtesies import examine_manners
from withstand.app.doctor.departures import examine_departures
from withstand.app.doctor.echo import Echo, echo_engine
from withstand.app.doctor.effects import FIELDS_LOAD, examine_fields, examine_lengths
from withstand.app.doctor.line import LimitedError, Line, TimeUpError
from withstand.app.doctor.mishaps import examine_faults, examine_refusals
from withstand.app.doctor.patient import Dose, Patient, mark, model_of, wait_for
from withstand.app.doctor.streams import examine_streams
from withstand.app.doctor.wording import OF_DIRECT, worded
from withstand.app.endpoint import Endpoint
from withstand.doctor.finding import Diagnosis, Finding, Question, Verdict
from withstand.doctor.hop import TTFT
from withstand.doctor.pace import foretold
from withstand.doctor.streaming import SHAPE
from withstand.errors import MeasureError, TargetError
from withstand.load.ask import key_sentence
from withstand.spec import Target

CHAPTERS = ("stream", "usage", "fields", "headers", "errors", "leaving", "hop", "manners")
_KNOCK_S = 0.5
"""Between requests that look for the echo engine: a key may have few of them."""
_LOTS = 6
"""Requests; one by lot among two engines hides from them once in 64 times."""
GOOD, ILL, NOT_KNOWN = 0, 1, 3
_LENGTHS = Question("fields.rest", "How a length is asked for")
_FIELDS = Question("fields.others", "What other fields do")
_MANNERS = Question("manners.rest", "Keys and connections")
_LEAVING = Question("leaving.rest", "When a client leaves")
_ERRORS = Question("errors.rest", "What becomes of errors")
"""What is said to be left out where a part of the examination has no time left."""
Tell = Callable[[str], None]


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """What may be used besides the path."""

    direct: Target | None = None
    """The engine itself."""
    echo: tuple[str, int] | None = None
    """(Host, port) of an echo engine that we start and that stands, or will stand, behind the path; 0 = any port."""
    echo_wait_s: float = 60.0
    """For somebody to put it there."""
    dose: Dose = Dose()


def examine(target: Target, means: Means, tell: Tell, asking: Callable[[], None] = lambda: None) -> Diagnosis:
    """Ask everything that can be asked; ``tell`` hears what is being done, ``asking`` is called before each request.

    Raises:
        WithstandError: nothing can be asked: no connection, no model, a wrong key, no answer at all.
    """
    began_ns = clock.now_ns()
    with contextlib.ExitStack() as stack:
        echo = stack.enter_context(echo_engine(*means.echo, means.dose.itl_ms)) if means.echo else None
        path = stack.enter_context(_path(target, echo, means, tell))
        direct = stack.enter_context(_direct(path, echo, means))
        for line in filter(None, (path, direct)):
            line.asking = asking
        findings, stopped = _until_limited(_findings(Patient(path, direct, echo, means.dose), tell))
        return Diagnosis(
            version=__version__,
            url=target.base_url or "",
            model=path.model,
            direct=means.direct.base_url if means.direct else None,
            echo=echo.url if echo else None,
            created_utc=clock.utc_iso(clock.anchor().wall_ns),
            took_s=round((clock.now_ns() - began_ns) / 1e9, 1),
            requests=path.asked + (direct.asked if direct else 0),
            stopped=stopped,
            findings=tuple(sorted(findings, key=lambda finding: CHAPTERS.index(finding.chapter))),
        )


def exit_code(diagnosis: Diagnosis) -> int:
    """1: something is wrong; 3: nothing could be told, or not all was asked; else 0."""
    if diagnosis.count(Verdict.WRONG):
        return ILL
    if diagnosis.stopped:
        return NOT_KNOWN
    told = diagnosis.count(Verdict.OK) + diagnosis.count(Verdict.DOUBT)
    return GOOD if told else NOT_KNOWN


def _until_limited(findings: Iterator[Finding]) -> tuple[list[Finding], str | None]:
    """What was found before a limit or the user stopped us, and what is said of that."""
    found: list[Finding] = []
    try:
        found.extend(findings)
    except LimitedError as e:
        return found, str(e)
    except KeyboardInterrupt:
        return found, "Interrupted; what was found until then is told."
    return found, None


def _findings(patient: Patient, tell: Tell) -> Iterator[Finding]:
    """First how a length is asked for; last what a hop may remember. The numbers are shares of the time for all."""
    echo, part = patient.echo, functools.partial(_in_time, patient)
    tell("How requests arrive …")
    yield from part(_LENGTHS, 0.25, examine_arrivals(patient, echo) if echo else examine_lengths(patient))
    tell("How answers come …")
    yield from part(SHAPE, 0.7, examine_streams(patient))
    if patient.direct:
        tell(foretold("What the hop costs", costs_load(patient.dose), patient.pace))
    yield from part(TTFT, 0.8, examine_costs(patient))
    if not echo:
        tell(foretold("What fields do", FIELDS_LOAD, patient.pace))
        yield from part(_FIELDS, 0.85, examine_fields(patient))
    tell("What the path does with keys and connections …")
    yield from part(_MANNERS, 0.92, examine_manners(patient))
    tell("What happens when a client leaves …")
    yield from part(_LEAVING, 0.96, examine_departures(patient))
    tell("What becomes of errors …")
    yield from part(_ERRORS, 1.0, examine_refusals(patient))
    if echo:
        yield from part(_ERRORS, 1.0, examine_faults(patient, echo))


def _in_time(patient: Patient, rest: Question, until: float, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Until that share of the time is over; what a chapter leaves of it, the next ones have."""
    patient.give_time(until)
    try:
        yield from findings
    except TimeUpError:
        yield patient.left_out(rest)


@contextlib.contextmanager
def _path(target: Target, echo: Echo | None, means: Means, tell: Tell) -> Iterator[Line]:
    if echo is None:
        with _line(target) as line:
            line.until_ns = clock.now_ns() + int(means.dose.seconds * 1e9)
            _must_answer(line, "The path")
            yield line
        return
    tell(f"The echo engine listens at {echo.url}; it is waited for behind {target.base_url}.")
    with contextlib.ExitStack() as stack:
        found: list[Line] = []
        if not wait_for(lambda: _try_echo(target, echo, stack, found), means.echo_wait_s, _KNOCK_S):
            raise TargetError(
                f"No request to {target.base_url} reached the echo engine at {echo.url} within "
                f"{means.echo_wait_s:g} s; configure it as the path's engine, and name its model by --model."
            )
        _must_be_alone(found[0], echo)
        yield found[0]


def _must_be_alone(line: Line, echo: Echo) -> None:
    """Of what another engine answers too nothing can be told."""
    for word in (mark() for _ in range(_LOTS)):
        heard = line.ask(line.body(stream=True, tokens=1, prompt=word), limits=True)
        if heard.ok and not echo.served(word):
            url = line.endpoint.target.base_url
            told = f"{url} asks other engines besides the echo engine at {echo.url}"
            raise TargetError(f"{told}; make that the only one of its model meanwhile.")


def _try_echo(target: Target, echo: Echo, stack: contextlib.ExitStack, found: list[Line]) -> bool:
    """Whether a request over the path has arrived; its line is kept then."""
    with contextlib.ExitStack() as trial:
        try:
            line = trial.enter_context(_line(target))
        except MeasureError:  # it is not up yet
            return False
        word = mark()
        line.ask(line.body(stream=True, tokens=1, prompt=word))
        if not echo.served(word):
            return False
        stack.push(trial.pop_all())
        found.append(line)
        return True


@contextlib.contextmanager
def _line(target: Target, model: str | None = None) -> Iterator[Line]:
    with contextlib.closing(Endpoint(target)) as endpoint:
        line = Line(endpoint, model=model_of(endpoint, model) if model else None)
        with contextlib.closing(line):
            yield line


@contextlib.contextmanager
def _direct(path: Line, echo: Echo | None, means: Means) -> Iterator[Line | None]:
    """The engine itself; the echo engine is one."""
    target = Target(base_url=echo.url, backend=path.endpoint.target.backend) if echo else means.direct
    if target is None:
        yield None
        return
    with contextlib.ExitStack() as stack:
        with worded(OF_DIRECT):
            line = stack.enter_context(_line(msgspec.structs.replace(target, model=path.model), path.model))
            line.length_field = path.length_field
            if not echo:
                _must_answer(line, "The engine")
        yield line


def _must_answer(line: Line, who: str) -> None:
    """One request must get some answer, or there is nothing to examine."""
    heard = line.ask(line.body(stream=True, tokens=4))
    if heard.http_status is None:
        raise TargetError(f"{line.endpoint.target.base_url} gives no answer: {heard.why}. Is it the right address?")
    if heard.http_status in {401, 403}:
        raise TargetError(key_sentence(heard.why, sent=line.endpoint.asker.sends_key, who=who))
    if heard.http_status == 404:
        raise TargetError(f"{who} knows no such model or path ({heard.why}). Name the model by --model.")
    url = line.endpoint.target.base_url
    if heard.http_status in {405, 501}:
        told = f"{url} takes no request at {line.endpoint.completions} ({heard.why})"
        raise TargetError(f"{told}, so it does not speak OpenAI's API. Is it the right address?")
    if 300 <= heard.http_status < 400:
        raise TargetError(f"{url} leads elsewhere ({heard.why}). Give the address that it leads to.")
    if heard.headers.get("content-type", "").startswith("text/html"):
        raise TargetError(f"{url} answers with a page for people ({heard.why}). Is it the right address, and up?")
