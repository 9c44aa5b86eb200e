"""Who counted the tokens, over which answers, and where the counts disagree."""

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.metrics.context import StageContext
from withstand.metrics.ledger import Accounts, Column, Ledger
from withstand.metrics.summarize import summarize_stage
from withstand.record import Record, Status, TokensFrom
from withstand.spec import Stage

Answer = Callable[..., Record]
Context = Callable[..., StageContext]
COUNTS = st.none() | st.integers(0, 40)


def ledger_of(records: list[Record], **told: Any) -> Ledger:
    accounts = Accounts()
    for record in records:
        accounts.add(record)
    return accounts.ledger(**{"text_by": "tokenizer.json of m", "text_exact": True, **told})


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    def one(number: int) -> Record:
        return Record(
            id=number,
            stage=0,
            status=draw(st.sampled_from((Status.OK, Status.OK, Status.TRUNCATED))),
            sent_ns=0,
            chunk_ns=list(range(draw(st.integers(0, 30)))),
            chunk_tokens=draw(st.none() | st.just([1])),
            streamed=draw(st.booleans()),
            prompt_tokens=draw(COUNTS),
            output_tokens=draw(COUNTS),
            tokens_from=draw(st.sampled_from((None, *TokensFrom))),
            cached_tokens=draw(COUNTS),
            reasoning_tokens=draw(COUNTS),
            reasoning_events=draw(COUNTS),
            text_tokens=draw(COUNTS),
            requested_output_tokens=draw(COUNTS),
        )

    return [one(number) for number in range(draw(st.integers(0, 12)))]


def test_each_column_says_of_how_many_answers_it_is_known(answer: Answer) -> None:
    ledger = ledger_of(
        [
            answer(0, text_tokens=19, reasoning_tokens=5, reasoning_events=4, cached_tokens=16),
            answer(1, output_tokens=21, tokens_from=TokensFrom.TOKENIZER, text_tokens=21, requested_output_tokens=None),
            answer(2, streamed=False, chunk_ns=[]),
            answer(3, status=Status.TRUNCATED, text_tokens=7),
        ]
    )
    assert ledger.server == Column(2, 40)
    assert ledger.text == Column(2, 40)
    assert ledger.events == Column(2, 40)
    assert (ledger.reasoning, ledger.reasoning_events) == (Column(1, 5), Column(1, 4))
    assert (ledger.prompt, ledger.cached) == (Column(3, 96), Column(1, 16))
    assert ledger.requested == Column(2, 40)
    assert ledger.text_by == "tokenizer.json of m"


def test_a_check_looks_only_at_answers_that_both_have_counted(answer: Answer) -> None:
    ledger = ledger_of([answer(0, text_tokens=40), answer(1), answer(2, text_tokens=20), answer(3, text_tokens=60)])
    check = ledger.check("server", "text")
    assert (check.answers, check.left_tokens, check.right_tokens, check.ratio) == (3, 60, 120, 0.5)
    assert (check.differing, check.worst) == (2, 3)
    assert (check.fewer, check.more) == (True, False)
    assert ledger.check("server", "nobody").answers == 0


@pytest.mark.parametrize(("text", "differing"), [(19, 0), (20, 0), (22, 0), (18, 400), (23, 400)])
def test_five_percent_and_an_end_token_are_no_difference(text: int, differing: int, answer: Answer) -> None:
    check = ledger_of([answer(i, text_tokens=text) for i in range(400)]).check("server", "text")
    assert check.differing == differing
    assert check.differs == bool(differing)


def test_events_whose_tokens_are_told_are_not_held_against_the_sum(answer: Answer) -> None:
    ledger = ledger_of([answer(tokens=5, output_tokens=20, chunk_tokens=[4] * 5)])
    assert ledger.events == Column(1, 5)
    assert ledger.checks == ()


def test_a_tokenizer_that_is_not_the_models_proves_nothing(answer: Answer) -> None:
    facts = [answer(i, text_tokens=30) for i in range(9)]
    assert [c.right for c in ledger_of(facts).disagreements] == ["text"]
    assert ledger_of(facts, text_exact=False).disagreements == ()


def test_text_against_events_matters_where_the_server_has_not_counted(answer: Answer) -> None:
    facts = [answer(i, text_tokens=80, output_tokens=80, tokens_from=TokensFrom.TOKENIZER) for i in range(9)]
    assert [(c.left, c.right) for c in ledger_of(facts).disagreements] == [("text", "events")]


@given(records(), st.randoms(use_true_random=False))
def test_the_order_of_answers_does_not_matter(facts: list[Record], rng: random.Random) -> None:
    shuffled = facts[:]
    rng.shuffle(shuffled)
    assert ledger_of(shuffled) == ledger_of(facts)


@given(records())
def test_no_column_is_more_than_its_answers_say(facts: list[Record]) -> None:
    ledger = ledger_of(facts)
    good = sum(record.status is Status.OK for record in facts)
    assert all(0 <= column.answers <= good for _, column in ledger.columns())
    assert all(check.differing <= check.answers <= good for check in ledger.checks)
    assert all((check.worst is None) == (check.differing == 0) for check in ledger.checks)


@given(records(), st.integers(1, 500))
def test_the_length_asked_for_is_never_a_count(facts: list[Record], asked: int) -> None:
    """Whatever was asked for, every number of the stage stays as it is."""

    def numbers(facts: list[Record]) -> Any:
        summary = summarize_stage(facts, StageContext(stage=Stage()))
        assert summary.ledger
        return msgspec.structs.replace(
            summary, doubts=(), ledger=msgspec.structs.replace(summary.ledger, requested=Column())
        )

    assert numbers(facts) == numbers([msgspec.structs.replace(r, requested_output_tokens=asked) for r in facts])


def test_what_nobody_counted_is_unknown_although_a_length_was_asked(answer: Answer, context: Context) -> None:
    facts = [answer(i, streamed=False, chunk_ns=[], output_tokens=None, tokens_from=None) for i in range(5)]
    summary = summarize_stage(facts, context(5))
    assert (summary.total_output_tokens, summary.output_throughput, summary.tokens_from) == (None, None, {})
    assert summary.ledger
    assert summary.ledger.requested == Column(5, 100)
