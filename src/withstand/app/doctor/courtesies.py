"""The requests for the chapter ``manners``."""

import email.utils
from collections.abc import Iterator

from withstand import clock
from withstand.app.doctor.line import Line
from withstand.app.doctor.patient import Patient, mark
from withstand.doctor.finding import Finding
from withstand.doctor.heard import Heard
from withstand.doctor.manners import ORIGIN, Seen, judge_manners

_TOKENS = 4
_STREAM_TOKENS = 32


def examine_manners(patient: Patient) -> Iterator[Finding]:
    """Keys, connections, clocks and headers."""
    line, word = patient.path, mark()
    own = line.endpoint.headers
    _ask(line, own)
    plain = _ask(line, {**own, "x-request-id": word, "Origin": ORIGIN})
    off_s = _clock_off_s(plain)
    without = {name: value for name, value in own.items() if name.lower() not in {"authorization", "api-key"}}
    seen = Seen(
        plain=plain,
        request_id=word,
        without_key=line.ask(line.body(stream=True, tokens=_TOKENS), headers=without, limits=True),
        key_given="Authorization" in own,
        loopback=_is_loopback(line),
        gzip=_ask(line, {**own, "Accept-Encoding": "gzip"}, _STREAM_TOKENS),
        clock_off_s=off_s,
    )
    yield from judge_manners(seen)


def _ask(line: Line, headers: dict[str, str], tokens: int = _TOKENS) -> Heard:
    return line.ask(line.body(stream=True, tokens=tokens), headers=headers)


def _clock_off_s(heard: Heard) -> float | None:
    """Its Date has whole seconds, cut off."""
    try:
        told_s = email.utils.parsedate_to_datetime(heard.headers["date"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return None
    return told_s + 0.5 - clock.wall_s()


def _is_loopback(line: Line) -> bool:
    address = line.endpoint.address
    return bool(address.unix_path) or address.host in {"localhost", "::1"} or address.host.startswith("127.")
