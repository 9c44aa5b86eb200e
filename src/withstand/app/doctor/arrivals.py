"""Requests as our echo engine gets them: bodies byte for byte, headers, and by which HTTP."""

from collections.abc import Iterator

import msgspec

from withstand.app.doctor.echo import Echo
from withstand.app.doctor.patient import Patient, mark
from withstand.doctor.fields import LENGTHS, judge_bodies
from withstand.doctor.finding import Finding
from withstand.doctor.headers import judge_headers, judge_upstream

_TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
_ODD = """ "temperature": 0.70, "top_p":1.0, "seed" : 12345678901234567, "ignore_eos":true, "min_tokens":3,
 "stop": ["\\u2028", "\\ud83d\\ude42 never"], "stream_options": {"include_usage": true}, "logit_bias":{"50256":-1E2},
 "chat_template_kwargs": {"enable_thinking": false}, "kv_transfer_params": {"do_remote_decode":true,"remote_host":null},
 "response_format": {"type":"text"}, "tools": [], "user": "Zo\\u00eb",
 "withstand_unknown": {"a": [1, 2.50, null, {}], "b": "\\/"}"""
"""Spelled as no encoder spells it, so that any parsing shows."""


def examine_arrivals(patient: Patient, echo: Echo) -> Iterator[Finding]:
    """Findings of the chapters ``fields`` and ``headers``."""
    line, word = patient.path, mark()
    sent = {**line.endpoint.headers, "x-request-id": word, "traceparent": _TRACE}
    bodies = [_odd_body(patient, word), _plain_body(patient, word)]
    for body in bodies:
        line.ask(body, headers=sent)
    served = echo.served(word)
    if not served:
        return
    arrived = served[0]
    yield from judge_bodies(bodies[0], arrived.came.body)
    for field in reversed(LENGTHS):
        if f'"{field}"'.encode() in arrived.came.body:
            patient.learn_length_field(field)
    yield from judge_headers({name.lower(): value for name, value in sent.items()}, arrived.came)
    yield judge_upstream(arrived.came.version, reused=any(one.connection_request for one in served))


def _odd_body(patient: Patient, word: str) -> bytes:
    start = _plain_body(patient, word)
    lengths = ", ".join(f'"{field}": 5' for field in LENGTHS)
    return start[:-1] + f", {lengths},{_ODD}}}".encode()


def _plain_body(patient: Patient, word: str) -> bytes:
    """A plain body of a few tokens, with a mark in its prompt; no length is told."""
    body = patient.path.body(stream=True, tokens=None, prompt=f"caf\u00e9 {word}")
    del body["stream_options"]
    return msgspec.json.encode(body)
