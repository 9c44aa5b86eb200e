"""The parts that decide, without sockets and without a clock."""

import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.gateway import asked, tap
from withstand.gateway.address import origin_of
from withstand.gateway.breaker import FAILURES_MAX, PAUSE_S, Breaker
from withstand.gateway.config import KeyConfig
from withstand.gateway.counts import HOP_BOUNDS_NS, Histogram
from withstand.gateway.deadlines import NEVER, Deadlines
from withstand.gateway.engine import Engine, Seat
from withstand.gateway.incoming import Head
from withstand.gateway.keys import Keyring, Shown
from withstand.gateway.last_words import Framing, last_words
from withstand.gateway.outgoing import Outgoing
from withstand.gateway.routes import ROUTES, route_of
from withstand.gateway.stopwatch import Stopwatch
from withstand.gateway.terms import Budget

# Money.


@pytest.mark.parametrize(
    ("usd", "written"), [(1e-05, "0.00001 USD"), (0.5, "0.5 USD"), (0, "0 USD"), (50.0, "50 USD"), (2e6, "2000000 USD")]
)
def test_an_amount_has_no_exponent(usd: float, written: str) -> None:
    assert Budget(usd=usd).amount == written


# A breaker.


def test_a_breaker_opens_after_failures_in_a_row_and_lets_one_try() -> None:
    breaker = Breaker()
    for _ in range(FAILURES_MAX - 1):
        breaker.failed(0.0)
    breaker.worked()
    for _ in range(FAILURES_MAX):
        assert not breaker.is_open(0.0)
        breaker.failed(0.0)
    assert breaker.is_open(PAUSE_S - 0.1)
    assert not breaker.is_open(PAUSE_S)
    breaker.began(PAUSE_S)
    assert breaker.is_open(PAUSE_S)  # for everybody but the one that tries
    breaker.worked()
    assert not breaker.is_open(PAUSE_S)


# Time.


def test_a_deadline_moves_with_each_piece_but_the_last_one_stays() -> None:
    deadlines = Deadlines(10.0)
    deadlines.expect(1.0, "late", 0.0)
    assert deadlines.overdue(None, 0.9) is None
    for n in range(1, 9):
        assert deadlines.overdue(b"piece %d" % n, float(n)) is None
    assert deadlines.overdue(b"piece 8", 9.0) is None  # another object: another piece
    piece = b"piece 9"
    assert deadlines.overdue(piece, 9.2) is None
    assert "all of one" in (deadlines.overdue(piece, 10.0) or "")


def test_a_deadline_says_what_did_not_come() -> None:
    deadlines = Deadlines(NEVER)
    deadlines.expect(1.0, "It is late.", 5.0)
    assert deadlines.overdue(None, 6.0) == "It is late."


def test_a_stopwatch_counts_the_gateways_own_time_alone() -> None:
    watch = Stopwatch(100)
    watch.theirs(130)  # dialling
    watch.ours(1_000)
    watch.theirs(1_005)  # sent
    watch.theirs(2_000)
    watch.ours(5_000)
    watch.theirs(5_007)
    assert watch.hop_ns == 30 + 5 + 7


# Bodies.

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.sampled_from(["gpt", '"model": "gpt"']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.just("model"), inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(st.tuples(st.text(), JSON), max_size=4), st.integers(0, 4), st.text())
def test_a_model_is_renamed_and_nothing_else(fields: list[tuple[str, Any]], place: int, new: str) -> None:
    tree = dict(fields)
    tree.pop("model", None)
    pairs = list(tree.items())
    pairs.insert(place, ("model", "gpt"))
    body = msgspec.json.format(msgspec.json.encode(dict(pairs)), indent=1)
    changed = asked.renamed(body, "gpt", new)
    assert asked.read(changed).model == new
    assert msgspec.json.decode(changed) == {**dict(pairs), "model": new}
    assert len(changed) - len(body) == len(msgspec.json.encode(new)) - len(b'"gpt"')


def test_a_name_that_is_spelled_with_escapes_is_renamed_too() -> None:
    assert asked.renamed(rb'{"mod\u0065l":"g\u0070t","x": 1.0e0 }', "gpt", "m") == b'{"model":"m","x":1.0e0}'
    with pytest.raises(ValueError, match=r"(?i)utf-8"):
        asked.renamed(b'{"\xff":1,"model":"g\\u0070t"}', "gpt", "m")


# Keys.


def test_a_key_shown_again_is_looked_up_anew_when_it_or_the_keyring_is_another() -> None:
    def ring(**keys: str) -> Keyring:
        told = {owner: KeyConfig(sha256=hashlib.sha256(key.encode()).hexdigest()) for owner, key in keys.items()}
        return Keyring(told, local=False)

    def owner(keyring: Keyring, key: bytes) -> str | None:
        found = keyring.key_of({b"authorization": b"Bearer " + key}.get, shown)
        return None if found is None else found.owner

    shown = Shown()
    before, after = ring(alice="a", bob="b"), ring(carol="a")
    assert [owner(before, key) for key in (b"a", b"a", b"b", b"x", b"x", b"a")] == [
        "alice",
        "alice",
        "bob",
        None,
        None,
        "alice",
    ]
    assert [owner(after, key) for key in (b"a", b"b")] == ["carol", None]


# Answers.


@pytest.mark.parametrize(
    ("pieces", "tokens"),
    [
        ([b'data: {"usage":{"completion_tokens": 12}}\n\n', b"data: [DONE]\n\n"], 12),
        ([b'{"usage":{"completion_tok', b'ens":3}}'], 3),
        ([b'{"usage":{"output_tokens":4}}'], 4),
        ([b"data: [DONE]\n\n"], None),
        ([], None),
    ],
)
def test_tokens_are_those_that_the_engine_tells(pieces: list[bytes], tokens: int | None) -> None:
    assert tap.said(pieces).completion == tokens


COUNTS = st.lists(
    st.tuples(
        st.sampled_from(["prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "x_tokens"]),
        st.integers(0, 10**6) | st.none(),
    ),
    max_size=4,
)


@given(st.lists(COUNTS, min_size=1, max_size=3), st.booleans(), st.sampled_from([b"", b" ", b',"more_tokens":1}']))
def test_a_plain_usage_is_read_as_any_other(usages: list[list[tuple[str, Any]]], spaced: bool, more: bytes) -> None:
    text = b"".join(b'{"usage":%b}' % msgspec.json.encode(dict(usage)) for usage in usages) + more
    text = msgspec.json.format(text, indent=0) if spaced and len(usages) == 1 and not more.strip() else text
    assert tap.said([text]) == tap._odd(text)


@given(st.lists(st.integers(0, 2 * 10**9)), st.lists(st.integers(0, 2 * 10**9)))
def test_many_observations_at_once_count_as_one_by_one(first: list[int], then: list[int]) -> None:
    single, at_once = Histogram(HOP_BOUNDS_NS), Histogram(HOP_BOUNDS_NS)
    for value_ns in first + then:
        single.add(value_ns)
    at_once.add_all(first)
    at_once.add_all([*then, *HOP_BOUNDS_NS])
    for bound_ns in HOP_BOUNDS_NS:
        single.add(bound_ns)
    assert (single.counts, single.sum_ns) == (at_once.counts, at_once.sum_ns)


CHUNKED, OPEN = Framing(events=True, chunked=True, open_ended=False), Framing(True, False, True)


@pytest.mark.parametrize(
    ("framing", "piece", "words"),
    [
        (CHUNKED, None, b"2\r\nE\n\r\n0\r\n\r\n"),
        (CHUNKED, b"5\r\na: b\n\n\r\n", b"2\r\nE\n\r\n0\r\n\r\n"),
        (CHUNKED, b"a: b\r\n\r\n\r\n", b"2\r\nE\n\r\n0\r\n\r\n"),
        (CHUNKED, b"5\r\na: b\n\n", None),
        (CHUNKED, b"a: b\n\r\n", None),
        (OPEN, b"a: b\n\n", b"E\n"),
        (OPEN, b"a: b\n", None),
        (Framing(True, False, False), b"a: b\n\n", None),
        (Framing(False, True, False), None, None),
    ],
)
def test_last_words_are_said_only_where_they_can_be_read(
    framing: Framing, piece: bytes | None, words: bytes | None
) -> None:
    assert last_words(framing, piece, b"E\n") == words


# Requests.


def test_only_posts_to_known_paths_go_to_engines() -> None:
    for path in ROUTES:
        assert route_of(b"POST", path.encode()) is ROUTES[path]
        assert route_of(b"POST", path.encode() + b"?api-version=1") is ROUTES[path]
        assert route_of(b"GET", path.encode()) is None
        assert route_of(b"POST", path.encode() + b"/") is None


def test_headers_are_found_whatever_their_case() -> None:
    head = Head()
    head.add_header(b"X-A", b"1")
    head.add_header(b"x-a", b"2")
    assert head.header(b"x-a") == b"1"
    assert head.header(b"x-b") is None


def test_a_head_is_kept_once_however_many_engines_it_goes_to() -> None:
    """Each idle connection may keep one."""
    head, keyring = Head(), Keyring({}, local=True)
    head.target = b"/v1/embeddings"
    head.add_header(b"X-A", b"y" * 1000)
    for i in range(50):
        seat = Seat(Engine(origin_of(f"http://h:{i + 1}/p")), 1.0, "m")
        seat.credentials = b"sk-%d" % i if i % 2 else None
        said = Outgoing(head, b"", b"r-1", keyring).head_for(seat, 7)
        key = b"authorization: Bearer sk-%d\r\n" % i if i % 2 else b""
        assert said == (
            b"POST /p/v1/embeddings HTTP/1.1\r\nhost: h:%d\r\nx-request-id: r-1\r\n" % (i + 1)
            + key + b"X-A: " + b"y" * 1000 + b"\r\ncontent-length: 7\r\n\r\n"
        )  # fmt: skip
    assert sum(len(rest) for _, rest in head.parts.values()) < 3000
