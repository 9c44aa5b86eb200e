"""Whether errors come through as what they are: with their status, their Retry-After, and never as an answer."""

from collections.abc import Sequence

from withstand.doctor.finding import Fact, Finding, Question
from withstand.doctor.heard import Heard
from withstand.record import Status
from withstand.wire.reply import one_line

_SHOWN_CHARS = 60
_REFUSALS = frozenset({400, 404, 413, 422})
NO_MODEL = Question("errors.unknown_model", "An unknown model")
BAD_JSON = Question("errors.bad_json", "A body that is no JSON")
TOO_LONG = Question("errors.too_long", "A prompt above the context")
_CODES = "Have the hop keep the engine's status: clients decide by it whether to try again."
_AS_ANSWER = "Clients and benchmarks count it as a success: have the hop pass errors on as errors."


def judge_refusal(question: Question, heard: Heard, wanted: Sequence[int], passes: str) -> Finding:
    """A request that must be refused; ``passes``: what it means when it is not."""
    facts: dict[str, Fact] = {"http_status": heard.http_status}
    status = heard.http_status
    if status is None:
        return question.wrong(f"no answer: {heard.why}", "Have the hop answer 4xx instead of going silent.", **facts)
    if status in wanted:
        return question.ok(f"HTTP {status}", **facts)
    if status < 300:
        said = f"HTTP {status}, as if nothing were wrong"
        return (question.wrong if question is BAD_JSON else question.doubt)(said, passes, **facts)
    if status in _REFUSALS:
        return question.ok(f"HTTP {status}, where OpenAI answers {wanted[0]}", **facts)
    if status >= 500:
        cure = f"Have it answer {wanted[0]}: a client that gets {status} tries again, in vain."
        return question.wrong(f"HTTP {status}: the client's mistake looks like the server's", cure, **facts)
    return question.doubt(f"HTTP {status}, where OpenAI answers {wanted[0]}", _CODES, **facts)


def judge_status(question: Question, heard: Heard, wanted: int, retry_after: str | None, tries: int) -> Finding:
    """An error that our echo engine gave; ``tries``: how often the hop has asked it."""
    told = heard.headers.get("retry-after")
    facts: dict[str, Fact] = {"http_status": heard.http_status, "retry_after": told, "tries": tries}
    asked = f", after {tries} tries" if tries > 1 else ""
    if heard.http_status is None:
        cure = "Have the hop pass the error on at once, and leave trying again to the client."
        return question.wrong(f"no answer: {heard.why}{asked}", cure, **facts)
    if heard.http_status < 300:
        return question.wrong(f"comes out as HTTP {heard.http_status}: {_shown(heard)}{asked}", _AS_ANSWER, **facts)
    if heard.http_status != wanted:
        return question.wrong(f"comes out as HTTP {heard.http_status}{asked}", _CODES, **facts)
    if retry_after and told != retry_after:
        said = f"HTTP {wanted}{asked}, but Retry-After is {'lost' if told is None else f'{told}, not {retry_after}'}"
        return question.wrong(said, "Have the hop keep Retry-After: without it clients come back at once.", **facts)
    kept = f", Retry-After: {told}" if retry_after else ""
    return question.ok(f"HTTP {wanted}{kept}{asked}", **facts)


def _shown(heard: Heard) -> str:
    text = one_line(heard.text, _SHOWN_CHARS)
    return f'an answer that says "{text}"' if text else "an answer without a word"


def judge_broken(question: Question, heard: Heard) -> Finding:
    """An answer that broke in mid-stream at our echo engine."""
    facts: dict[str, Fact] = {"status": heard.status.value, "done": heard.done}
    match heard.status:
        case Status.STREAM_ERROR:
            return question.ok("an error event", **facts)
        case Status.TRUNCATED | Status.RESET:
            return question.ok("an answer without its end: clients can tell", **facts)
        case Status.OK:
            return question.wrong("an answer that looks whole", _AS_ANSWER, **facts)
        case Status.TIMEOUT:
            cure = "Have the hop end the answer when the engine does."
            return question.wrong(f"the client is left waiting ({heard.why})", cure, **facts)
        case Status.BAD_ANSWER:
            return question.ok("a last event that is cut: clients can tell", **facts)
        case _:
            return question.ok(f"an error: {heard.why[:60]}", **facts)


def judge_error_event(question: Question, heard: Heard) -> Finding:
    """An error that the engine tells in the stream."""
    finding = judge_broken(question, heard)
    if heard.status is Status.TRUNCATED:
        cure = "Have the hop pass on the error event: without it nobody learns why."
        return question.doubt("the answer is cut, and what the engine said of it is lost", cure, **finding.facts)
    return finding
