"""What a request has used and costs: the estimate before, what engines say, what is charged where they do not."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.gateway import tap
from withstand.gateway.counts import Ending, Outcome
from withstand.gateway.money import estimate
from withstand.gateway.money.bill import Bill, bill_of, cost_nusd
from withstand.gateway.tap import Said
from withstand.gateway.terms import Price

CHAT = "/v1/chat/completions"


def ending(outcome: Outcome = Outcome.OK, status: int = 200, **more: Any) -> Ending:
    told: dict[str, Any] = {
        "prompt_tokens": None,
        "cached_tokens": None,
        "output_tokens": None,
        "engine": "e",
        "first_byte_ns": None,
    } | more
    fixed = {"request_id": "r", "route": CHAT, "key": "a", "model": "m", "hop_ns": 0}
    return Ending(status=status, outcome=outcome, queue_ns=None, total_ns=0, **fixed, **told)


@pytest.mark.parametrize(
    ("pieces", "first", "said"),
    [
        (
            [b'{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}}'],
            b"",
            Said(10, 4, 5),
        ),
        ([b'data: {"usage": null}', b'\n\ndata: {"choices":[],"usage" : {"prompt_tokens" : 3}}'], b"", Said(3)),
        (
            [b'{"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":2},"output_tokens":1}}'],
            b"",
            Said(9, 2, 1),
        ),
        (
            [b'data: {"usage":{"output_tokens":15}}'],
            b'{"usage":{"input_tokens":25,"cache_read_input_tokens":100,"output_tokens":1}}',
            Said(125, 100, 15),
        ),
        (
            [
                b'{"usage":{"input_tokens":25,"cache_creation_input_tokens":5,"output_tokens":1}}',
                b'{"usage":{"output_tokens":7}}',
            ],
            b"",
            Said(30, None, 7),
        ),
        ([b'{"text":"\\"usage\\":{\\"prompt_tokens\\":9}"}'], b"", Said()),
        ([b'{"usage":{"prompt_to', b'kens":12,"completion_tokens":4}}'], b"", Said(12, None, 4)),
        ([b'{"usage":{"prompt_tokens":9,"cached_tokens":2},"x":{"more_tokens":1}}'], b"", Said(9, 2)),
        ([b'{"usage":{"prompt_tokens":"9","completion_tokens":1234567890123}}'], b"", Said()),
        ([b'{"usage":{"prompt_tokens":9,"other":[{"cached_tokens":2}]}}'], b"", Said(9, 2)),
        ([], b"", Said()),
    ],
)
def test_usage_is_read_in_every_dialect(pieces: list[bytes], first: bytes, said: Said) -> None:
    assert tap.said(pieces, first) == said


def test_usage_in_thousands_of_events_is_that_of_the_last() -> None:
    events = [b'data: {"usage":{"completion_tokens":%d}}\n\n' % n for n in range(5000)]
    assert tap.said([b"".join(events)]) == Said(completion=4999)


@pytest.mark.parametrize(
    ("ended", "events", "bill"),
    [
        (ending(prompt_tokens=8, cached_tokens=2, output_tokens=4), 0, Bill(8, 2, 4)),
        (ending(prompt_tokens=8), 0, Bill(8)),  # embeddings
        (ending(), 13, Bill(100, 0, 10, estimated=True)),
        (ending(), 1, Bill(100, 0, 0, estimated=True)),
        (ending(Outcome.CLIENT_LEFT), 13, Bill(100, 0, 10, estimated=True)),
        (ending(Outcome.CLIENT_LEFT, 0), 0, Bill(100, estimated=True)),
        (ending(Outcome.CLIENT_LEFT, 0, engine=None), 0, Bill()),
        (ending(Outcome.CLIENT_LEFT, prompt_tokens=8, output_tokens=1), 23, Bill(8, 0, 20, estimated=True)),
        (ending(Outcome.ENGINE_FAILED, first_byte_ns=1), 13, Bill(100, 0, 10, estimated=True)),
        (ending(Outcome.ENGINE_FAILED), 0, Bill()),
        (ending(Outcome.ENGINE_FAILED, 502), 0, Bill()),
        (ending(status=400), 0, Bill()),
        (ending(Outcome.REFUSED, 429, engine=None), 0, Bill()),
        (ending(prompt_tokens=2, cached_tokens=9, output_tokens=1), 0, Bill(2, 2, 1)),
    ],
)
def test_what_is_charged(ended: Ending, events: int, bill: Bill) -> None:
    assert bill_of(ended, 100, events) == bill


def test_costs_are_exact_in_nano_dollars() -> None:
    price = Price(input=0.15, output=0.6, cached_input=0.075)
    assert cost_nusd(Bill(1_000_000, 400_000, 1_000_000), price) == 720_000_000
    assert cost_nusd(Bill(1, 0, 0), price) == 150
    assert cost_nusd(Bill(10, 10, 0), Price(input=1)) == 10_000
    assert cost_nusd(Bill(10, 0, 10), None) == 0


@given(bill=st.builds(Bill, prompt=st.integers(0, 10**6), completion=st.integers(0, 10**6)), more=st.integers(0, 10**6))
def test_more_tokens_never_cost_less(bill: Bill, more: int) -> None:
    price = Price(input=0.1, output=3)
    assert cost_nusd(msgspec.structs.replace(bill, prompt=bill.prompt + more), price) >= cost_nusd(bill, price)


@pytest.mark.parametrize(
    ("fields", "path", "tokens"),
    [
        ({"max_tokens": 7}, CHAT, 7),
        ({"max_tokens": 7, "max_completion_tokens": 9}, CHAT, 9),
        ({"max_output_tokens": 5}, "/v1/responses", 5),
        ({"max_tokens": 7, "n": 3}, CHAT, 21),
        ({}, CHAT, estimate.ASSUMED_OUTPUT_TOKENS),
        ({"max_tokens": "many", "n": True, "max_completion_tokens": -1}, CHAT, estimate.ASSUMED_OUTPUT_TOKENS),
        ({"max_tokens": 10**30}, CHAT, 1 << 32),
        ({"max_tokens": 7}, "/v1/embeddings", 0),
    ],
)
def test_the_estimate_of_an_answer(fields: dict[str, Any], path: str, tokens: int) -> None:
    body = msgspec.json.encode(fields) if 10**30 not in fields.values() else b'{"max_tokens":%d}' % 10**30
    assert estimate.output_tokens(estimate.wanted(body), path) == tokens


@given(
    tree=st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4),
    options=st.none() | st.dictionaries(st.sampled_from(["include_usage", "other"]), st.booleans()),
    given=st.booleans(),
)
def test_asking_for_usage_changes_nothing_else(tree: dict[str, Any], options: Any, given: bool) -> None:
    tree = {**tree, "stream": True, "max_tokens": 1.0} | ({"stream_options": options} if given else {})
    body = b" \n" + msgspec.json.encode(tree)
    told = msgspec.json.decode(estimate.asking(body, estimate.wanted(body), CHAT))
    assert told == {**tree, "stream_options": {**((options if given else None) or {}), "include_usage": True}}


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b'{"stream":true,"stream_options":{"include_usage":true}}', CHAT),
        (b'{"stream":false}', CHAT),
        (b'{"stream":true}', "/v1/messages"),
        (b'{"stream":true,"stream_options":"what?"}', CHAT),
    ],
)
def test_bodies_that_need_not_ask_stay_as_they_are(body: bytes, path: str) -> None:
    assert estimate.asking(body, estimate.wanted(body), path) is body
