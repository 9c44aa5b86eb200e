"""Fields, errors, costs and doubts: what is said of what was heard."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from withstand.doctor.doubts import doubts_of
from withstand.doctor.faults import BAD_JSON, NO_MODEL, judge_broken, judge_error_event, judge_refusal, judge_status
from withstand.doctor.fields import Effect, Tried, compared, judge_bodies, judge_field
from withstand.doctor.finding import Diagnosis, Finding, Question, Verdict
from withstand.doctor.headers import Came, judge_headers, judge_upstream
from withstand.doctor.heard import Heard
from withstand.doctor.hop import added, judge_hop
from withstand.doctor.leaving import STREAM, judge_noticed
from withstand.doctor.manners import Seen, judge_manners
from withstand.doctor.streaming import SHAPE
from withstand.doctor.usage import judge_fit, judge_told
from withstand.metrics.doubts import DoubtKind
from withstand.record import Status

Q = Question("errors.x", "x")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
BODIES = st.dictionaries(st.text(max_size=8), JSON, max_size=6)


def answer(status: Status = Status.OK, http_status: int | None = 200, **fields: Any) -> Heard:
    return Heard(status=status, http_status=http_status, **fields)


# Bodies.


@given(BODIES)
def test_spelling_is_no_change(body: dict[str, Any]) -> None:
    spelled = msgspec.json.format(msgspec.json.encode(body), indent=3)
    arrived = compared(spelled, msgspec.json.encode(body))
    assert arrived is not None
    assert (arrived.dropped, arrived.changed, arrived.added) == ((), (), ())


@settings(max_examples=40)
@given(BODIES, BODIES)
def test_every_difference_has_one_name(before: dict[str, Any], after: dict[str, Any]) -> None:
    arrived = compared(b" " + msgspec.json.encode(before), msgspec.json.encode(after))
    assert arrived is not None
    assert set(arrived.dropped) == before.keys() - after.keys()
    assert set(arrived.added) == after.keys() - before.keys()
    assert set(arrived.changed) <= before.keys() & after.keys()


def test_one_and_true_are_not_the_same() -> None:
    arrived = compared(b'{"a": 1, "b": {"c": [1.0]}}', b'{"a":true,"b":{"c":[1]}}')
    assert arrived is not None
    assert arrived.changed == ("a", "b")


def test_bodies_in_words() -> None:
    sent = b'{"model": "alias", "min_tokens": 3}'
    assert [f.verdict for f in judge_bodies(sent, sent)] == [Verdict.OK, Verdict.OK]
    assert "but for the model" in judge_bodies(sent, b'{"model":"real","min_tokens":3}')[0].said
    kept = judge_bodies(sent, b'{"model":"real","user":"u"}')[1]
    assert (kept.verdict, kept.said) == (Verdict.WRONG, "dropped: min_tokens; added: user")
    assert judge_bodies(sent, b"not JSON")[0].verdict is Verdict.WRONG


# Fields by effect.


@pytest.mark.parametrize(
    ("field", "path", "direct", "verdict"),
    [
        ("stop", Effect.HAS, None, Verdict.OK),
        ("stop", Effect.UNKNOWN, None, Verdict.NOT_TRIED),
        ("stop", Effect.HAS_NOT, Effect.HAS, Verdict.WRONG),
        ("stop", Effect.HAS_NOT, Effect.HAS_NOT, Verdict.OK),
        ("stop", Effect.HAS_NOT, None, Verdict.DOUBT),
        ("max_tokens", Effect.HAS_NOT, None, Verdict.WRONG),
        ("seed", Effect.REFUSED, None, Verdict.DOUBT),
        ("seed", Effect.REFUSED, Effect.HAS, Verdict.WRONG),
    ],
)
def test_a_field(field: str, path: Effect, direct: Effect | None, verdict: Verdict) -> None:
    finding = judge_field(field, Tried(path, "seen"), Tried(direct, "there") if direct else None)
    assert finding.verdict is verdict
    assert bool(finding.cure) == (verdict in {Verdict.WRONG, Verdict.DOUBT})


# Errors.


@pytest.mark.parametrize(
    ("http_status", "verdict"),
    [(404, Verdict.OK), (400, Verdict.OK), (200, Verdict.DOUBT), (500, Verdict.WRONG), (403, Verdict.DOUBT)],
)
def test_an_unknown_model(http_status: int, verdict: Verdict) -> None:
    assert judge_refusal(NO_MODEL, answer(http_status=http_status), (404,), "cure").verdict is verdict


def test_an_answer_to_broken_json_is_wrong() -> None:
    assert judge_refusal(BAD_JSON, answer(), (400,), "cure").verdict is Verdict.WRONG
    assert judge_refusal(BAD_JSON, answer(Status.RESET, None), (400,), "cure").verdict is Verdict.WRONG


def test_a_limit_keeps_its_status_and_its_date() -> None:
    limited = answer(Status.LIMITED, 429, headers={"retry-after": "17"})
    assert judge_status(Q, limited, 429, "17", 1).said == "HTTP 429, Retry-After: 17"
    assert "lost" in judge_status(Q, answer(Status.LIMITED, 429), 429, "17", 1).said
    assert judge_status(Q, answer(Status.HTTP_ERROR, 500), 429, "17", 5).said == "comes out as HTTP 500, after 5 tries"
    said = judge_status(Q, answer(text="Backend Error"), 429, "17", 1)
    assert (said.verdict, "Backend Error" in said.said) == (Verdict.WRONG, True)
    assert "\x1b" not in judge_status(Q, answer(text="\x1b[2J"), 429, None, 1).said
    assert judge_status(Q, answer(Status.TIMEOUT, None), 503, None, 9).verdict is Verdict.WRONG


@pytest.mark.parametrize(
    ("status", "event", "cut"),
    [
        (Status.STREAM_ERROR, Verdict.OK, Verdict.OK),
        (Status.TRUNCATED, Verdict.DOUBT, Verdict.OK),
        (Status.OK, Verdict.WRONG, Verdict.WRONG),
        (Status.TIMEOUT, Verdict.WRONG, Verdict.WRONG),
        (Status.BAD_ANSWER, Verdict.OK, Verdict.OK),
    ],
)
def test_a_broken_answer(status: Status, event: Verdict, cut: Verdict) -> None:
    assert judge_error_event(Q, answer(status)).verdict is event
    assert judge_broken(Q, answer(status)).verdict is cut


# Headers.


def test_headers_on_their_way() -> None:
    sent = {"x-request-id": "r", "traceparent": "00-aa-bb-01", "authorization": "Bearer k"}
    same = judge_headers(sent, Came("1.1", sent, b""))
    assert all(finding.verdict is Verdict.OK for finding in same)
    other = {"x-request-id": "own", "traceparent": "00-aa-cc-01", "authorization": "Bearer other"}
    request_id, trace, key = judge_headers(sent, Came("1.1", other, b""))
    assert (request_id.verdict, trace.verdict, key.said) == (
        Verdict.DOUBT,
        Verdict.OK,
        "the hop puts its own in its place",
    )
    assert [f.verdict for f in judge_headers(sent, Came("1.1", {}, b""))] == [Verdict.DOUBT, Verdict.DOUBT, Verdict.OK]


def test_how_the_engine_is_asked() -> None:
    assert judge_upstream("1.1", reused=True).verdict is Verdict.OK
    assert "HTTP/1.0" in judge_upstream("1.0", reused=False).said
    assert judge_upstream("1.1", reused=False).verdict is Verdict.DOUBT


# Costs.


@given(st.lists(st.floats(1, 100), min_size=6, max_size=80), st.floats(-0.5, 50))
def test_a_constant_hop_is_found_exactly(own_ms: list[float], hop_ms: float) -> None:
    seen = added([ms + hop_ms for ms in own_ms], own_ms)
    assert seen is not None
    for value in (seen.p50_ms, seen.low_ms, seen.high_ms, seen.p99_ms):
        assert value is not None
        assert math.isclose(value, hop_ms, abs_tol=1e-9)


def test_too_few_pairs_say_nothing() -> None:
    assert added([1.0] * 5, [1.0] * 5) is None
    assert [f.verdict for f in judge_hop(None, None)] == [Verdict.NOT_TRIED] * 2


def costs(ttft_ms: float, itl_ms: float) -> list[Finding]:
    return judge_hop(added([50 + ttft_ms] * 10, [50.0] * 10), added([10 + itl_ms] * 10, [10.0] * 10))


def test_costs_in_words() -> None:
    assert [f.verdict for f in costs(0.3, 0.0)] == [Verdict.OK, Verdict.OK]
    assert "TCP_NODELAY" in costs(40.5, 0.0)[0].cure
    assert costs(0.3, -0.001)[1].said.startswith("0.00 ms at p50")
    ttft, itl = costs(90, -8)
    assert (ttft.verdict, itl.verdict) == (Verdict.DOUBT, Verdict.DOUBT)
    assert "faster than the engine" in itl.said


# The rest.


def test_usage() -> None:
    assert judge_told([answer(usage_tokens=3)]).verdict is Verdict.OK
    assert judge_told([answer(usage_tokens=3), answer()]).verdict is Verdict.WRONG
    assert judge_fit([(100, 98)], "the engine's tokenizer").verdict is Verdict.OK
    assert judge_fit([(500, 100)], "the engine's tokenizer").verdict is Verdict.WRONG
    assert judge_fit([(400, 100)], "output events").verdict is Verdict.DOUBT
    assert judge_fit([], "output events").verdict is Verdict.NOT_TRIED


def test_leaving() -> None:
    verdicts = [judge_noticed(STREAM, ms, 4).verdict for ms in (0.3, 1500.0, None)]
    assert verdicts == [Verdict.OK, Verdict.DOUBT, Verdict.WRONG]


def manners(**changes: Any) -> dict[str, Finding]:
    plain = answer(headers={"x-request-id": "r"}, reused=True, keep_alive=True)
    seen: dict[str, Any] = {
        "plain": plain,
        "request_id": "r",
        "without_key": answer(Status.HTTP_ERROR, 401),
        "key_given": True,
        "loopback": False,
        "gzip": answer(),
        "clock_off_s": 0.1,
    }
    return {finding.check.partition(".")[2]: finding for finding in judge_manners(Seen(**(seen | changes)))}


def test_good_manners() -> None:
    assert all(finding.verdict is Verdict.OK for finding in manners().values())


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("engine;dur=2.105, edge-whole;dur=0.0123456, hop;dur=1", "engine;dur=2.105 …"),
        ("engine;dur=2.105, edge-whole;dur=0.012", "engine;dur=2.105, edge-whole;dur=0.012"),
        ("x" * 41, "x" * 39 + "…"),
    ],
)
def test_a_long_hint_is_cut_aloud(value: str, said: str) -> None:
    heads = {"server-timing": value, "x-accel-buffering": "no"}
    assert manners(plain=answer(headers=heads))["hints"].said == f"server-timing: {said}; x-accel-buffering: no"


def test_bad_manners() -> None:
    assert manners(without_key=answer())["key"].verdict is Verdict.WRONG
    assert manners(without_key=answer(), key_given=False)["key"].verdict is Verdict.DOUBT
    assert manners(without_key=answer(), key_given=False, loopback=True)["key"].verdict is Verdict.OK
    assert manners(clock_off_s=-90.0)["clock"].said == "90 s behind this one"
    bare = manners(plain=answer(headers={"access-control-allow-origin": "*"}), key_given=False)
    assert [bare[name].verdict for name in ("keep_alive", "x-request-id", "cors")] == [Verdict.DOUBT] * 3
    ill = manners(plain=answer(Status.HTTP_ERROR, 502), without_key=answer(Status.HTTP_ERROR, 502))
    assert [ill[name].verdict for name in ("keep_alive", "x-request-id", "key")] == [Verdict.NOT_TRIED] * 3
    own = manners(plain=answer(headers={"access-control-allow-origin": "http://127.0.0.1"}), key_given=False)
    assert own["cors"].verdict is Verdict.OK
    squeezed = answer(headers={"content-encoding": "gzip"}, events_ns=(5, 5, 5, 5))
    assert manners(gzip=squeezed)["gzip"].verdict is Verdict.WRONG


def diagnosis(*findings: Finding) -> Diagnosis:
    return Diagnosis(
        version="0", url="http://x", model="m", created_utc="", took_s=0, requests=1, findings=tuple(findings)
    )


def test_what_bears_on_numbers_becomes_a_doubt() -> None:
    played = SHAPE.wrong("fakes the stream", "Replace it.", kind="fake stream")
    pieces = SHAPE.wrong("buffers by size", "Switch it off.", kind="buffers by size")
    other = Question("errors.429", "429").wrong("lost", "Keep it.")
    assert [doubt.kind for doubt in doubts_of(diagnosis(played, other))] == [DoubtKind.NOT_STREAMED]
    assert [doubt.kind for doubt in doubts_of(diagnosis(pieces))] == [DoubtKind.HOP_BUFFERS]
    assert not list(doubts_of(diagnosis(SHAPE.ok("streams"))))
