"""Which engine gets a request, without sockets and in virtual time."""

import random
from collections import Counter
from collections.abc import Callable
from os.path import commonprefix
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueing import closed_loop, model_config, roster, seat
from withstand.errors import SpecError
from withstand.gateway import asked
from withstand.gateway.config import POLICY_NAMES
from withstand.gateway.engine import Seat
from withstand.gateway.load import SAID_S_MAX, Unseen
from withstand.gateway.policies import Choose, policy_of
from withstand.gateway.policies.bounds import starving, within
from withstand.gateway.policies.chain import BLOCK_BYTES, bytes_in, chain_of
from withstand.gateway.policies.prefix import Known
from withstand.gateway.trouble import Trouble


def chooser(policy: str, body: dict[str, Any] | None = None, headers: dict[bytes, bytes] | None = None) -> Choose:
    made = policy_of(model_config(policy=policy), random.Random(0))
    return made.chooser(asked.read(msgspec.json.encode({"model": "m", **(body or {})})), (headers or {}).get)


# By weight.


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_round_robin_gives_each_its_weight_in_every_round(weights: list[int]) -> None:
    seats = [seat(i, weight) for i, weight in enumerate(weights)]
    choose = chooser("round_robin")
    for _ in range(3):
        turns = Counter(seats.index(choose(seats, 0.0)) for _ in range(sum(weights)))
        assert [turns[i] for i in range(len(weights))] == weights


@pytest.mark.parametrize("policy", ["random", "least_inflight"])
def test_idle_engines_are_chosen_by_their_weights(policy: str) -> None:
    seats = [seat(0, 9.0), seat(1, 1.0)]
    choose = chooser(policy)
    light = sum(choose(seats, 0.0) is seats[1] for _ in range(2000))
    assert 120 < light < 290


@given(st.integers(2, 6), st.integers(0, 2**32))
def test_of_two_choices_the_busiest_is_never_taken(count: int, seed: int) -> None:
    seats = [seat(i, in_flight=i) for i in range(count)]
    policy = policy_of(model_config(policy="least_inflight"), random.Random(seed))
    choose = policy.chooser(asked.read(b'{"model":"m"}'), {}.get)
    assert seats[-1] not in [choose(seats, 0.0) for _ in range(20)]


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_one_engine_is_always_it(policy: str) -> None:
    only = seat(0, in_flight=100)
    assert chooser(policy, {"user": "u", "prompt": "x" * 2000})([only], 0.0) is only


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_no_weight_is_no_traffic(policy: str) -> None:
    model = roster(random.Random(1), [1.0, 0.0, 2.0], policy=policy).models["m"]
    told = asked.read(b'{"model":"m","user":"u","prompt":"%b"}' % (b"x" * 3000))
    found = [model.choose(0.0, (), model.policy.chooser(told, {}.get)) for _ in range(50)]
    assert model.seats[1] not in found
    assert model.choose(0.0, (model.seats[0], model.seats[2]), chooser(policy)) is None


# Sessions.

NAMES = st.binary(min_size=1, max_size=12)


def stick(session: bytes, seats: list[Seat]) -> Seat:
    return chooser("session", headers={b"x-session-id": session})(seats, 0.0)


@given(st.sets(NAMES, min_size=1, max_size=30), st.integers(2, 6), st.data())
def test_an_engine_that_leaves_moves_its_own_sessions_only(
    sessions: set[bytes], count: int, data: st.DataObject
) -> None:
    seats = [seat(i) for i in range(count)]
    gone = data.draw(st.sampled_from(seats))
    left = [s for s in seats if s is not gone]
    for session in sessions:
        before, after = stick(session, seats), stick(session, left)
        assert after is before or before is gone


@given(st.sets(NAMES, min_size=1, max_size=30), st.floats(0.1, 5), st.floats(1, 5))
def test_more_weight_only_draws_sessions_to_it(sessions: set[bytes], weight: float, times: float) -> None:
    seats = [seat(0), seat(1, weight), seat(2)]
    before = {session: stick(session, seats) for session in sessions}
    seats[1].weight *= times
    for session in sessions:
        assert stick(session, seats) in {before[session], seats[1]}


def test_sessions_spread_by_weight_so_that_a_canary_sticks() -> None:
    seats = [seat(0, 19.0), seat(1, 1.0)]
    canary = [n for n in range(2000) if stick(b"%d" % n, seats) is seats[1]]
    assert 60 < len(canary) < 150
    assert all(stick(b"%d" % n, seats) is seats[1] for n in canary)


def test_a_hot_session_is_sent_elsewhere_when_its_engine_is_above_the_bound() -> None:
    seats = [seat(i) for i in range(4)]
    for under_way in range(1, 200):
        chosen = stick(b"hot", seats)
        assert chosen.engine.in_flight < 1.5 * under_way / 4
        chosen.engine.sends(0.0)


@pytest.mark.parametrize(
    ("body", "header"),
    [
        ({}, b"x"),
        ({"session_id": "x", "user": "other"}, None),
        ({"prompt_cache_key": "x", "session_id": "other"}, None),
        ({"user": "x"}, None),
        ({"metadata": {"a": 1, "user_id": "x"}}, None),
        ({"user": 3, "prompt_cache_key": None, "metadata": {"user_id": "x"}}, None),
    ],
)
def test_a_session_is_named_by_header_or_body(body: dict[str, Any], header: bytes | None) -> None:
    seats = [seat(i) for i in range(16)]
    headers = {} if header is None else {b"x-session-id": header}
    choose = chooser("session", body, headers)
    assert {choose(seats, 0.0) for _ in range(20)} == {stick(b"x", seats)}


@pytest.mark.parametrize(
    "body", [{}, {"user": 7}, {"metadata": ["user_id"]}, {"metadata": {"user_id": 7}}, {"user": ""}]
)
def test_without_a_session_the_least_busy_is_asked(body: dict[str, Any]) -> None:
    seats = [seat(0, in_flight=9), seat(1)]
    assert {chooser("session", body)(seats, 0.0) for _ in range(20)} == {seats[1]}


def test_what_cannot_name_a_session_is_refused_with_its_path() -> None:
    with pytest.raises(SpecError, match=r"metadata\.user_id.*models\.m\.session_by\[1\]"):
        model_config(session_by=["header.X-A", "body.temperature"])


# Bounds.


@given(st.lists(st.tuples(st.floats(0.01, 100), st.integers(0, 1000)), min_size=1, max_size=8), st.floats(1, 3))
def test_somebody_is_always_below_the_bound(told: list[tuple[float, int]], bound: float) -> None:
    seats = [seat(i, weight, in_flight) for i, (weight, in_flight) in enumerate(told)]
    free = within(seats, 0.0, bound)
    assert free
    most = bound * (sum(in_flight for _, in_flight in told) + 1) / sum(weight for weight, _ in told)
    assert all(s.engine.in_flight <= most * s.weight * (1 + 1e-9) for s in free)


@given(st.lists(st.integers(0, 100), min_size=2, max_size=8), st.floats(1, 3), st.data())
def test_who_starves_has_less_than_who_is_preferred(loads: list[int], bound: float, data: st.DataObject) -> None:
    seats = [seat(i, in_flight=load) for i, load in enumerate(loads)]
    preferred = data.draw(st.sampled_from(seats))
    least = starving(seats, 0.0, bound, preferred)
    share = (sum(loads) + 1) / len(loads)
    half_way = share * (1 + bound) / 2
    assert (least is not None) == (min(loads) * bound < share and preferred.engine.in_flight >= half_way)
    assert least is None or least.engine.in_flight == min(loads)


# Prompts.


@given(st.binary(max_size=3000), st.binary(max_size=300), st.binary(max_size=300))
def test_prompts_that_begin_alike_have_chains_that_do(common: bytes, one: bytes, other: bytes) -> None:
    first, second = chain_of([common, one]), chain_of([common, other])
    shared = sum(a == b for a, b in zip(first, second, strict=False))
    same = len(commonprefix([common + one, common + other]))  # noqa: RUF071  characters are meant
    assert first[:shared] == second[:shared]
    assert shared == same // BLOCK_BYTES


def test_a_large_prompt_has_few_blocks() -> None:
    chain = chain_of([b"x" * 500_000])
    assert len(chain) < 400
    assert 500_000 - 2048 < bytes_in(len(chain)) <= 500_000
    assert bytes_in(0) == 0


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), max_size=40), st.integers(1, 12))
def test_what_is_known_is_bounded_and_has_no_gaps(prompts: list[list[int]], most: int) -> None:
    known = Known(most, 0.0)
    for prompt in prompts:
        chain = tuple(hash(tuple(prompt[: i + 1])) for i in range(len(prompt)))
        known.add(chain)
        assert len(known) <= most
        assert known.depth(chain) == min(len(chain), most)
        for earlier in prompts:
            beginnings = tuple(hash(tuple(earlier[: i + 1])) for i in range(len(earlier)))
            depths = [known.depth(beginnings[:end]) for end in range(1, len(beginnings) + 1)]
            there = [known.depth((each,)) for each in beginnings]
            assert sum(there) == depths[-1]
            assert there == sorted(there, reverse=True)


def chat(*texts: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text} for text in texts]}


def test_a_conversation_goes_on_where_it_began_and_is_not_the_only_one_there() -> None:
    policy = policy_of(model_config(policy="prefix"), random.Random(0))
    seats = [seat(i) for i in range(4)]

    def ask(*texts: str) -> Seat:
        return policy.chooser(asked.read(msgspec.json.encode({"model": "m", **chat(*texts)})), {}.get)(seats, 0.0)

    first = {name: ask(name * 500) for name in "abcdefgh"}
    assert len(set(first.values())) > 1
    for name, chosen in first.items():
        assert {ask(name * 500, "answer" * 100, str(turn)) for turn in range(5)} == {chosen}


def test_a_prompt_that_all_share_does_not_sink_one_engine() -> None:
    policy = policy_of(model_config(policy="prefix"), random.Random(0))
    model_seats = [seat(i) for i in range(4)]
    for n in range(1, 200):
        told = asked.read(msgspec.json.encode({"model": "m", **chat("system" * 400, f"question {n}")}))
        chosen = policy.chooser(told, {}.get)(model_seats, 0.0)
        assert chosen.engine.in_flight < 1.5 * n / 4
        chosen.engine.sends(0.0)


def test_a_prompt_that_all_share_finds_every_engine() -> None:
    policy = policy_of(model_config(policy="prefix"), random.Random(0))
    seats = [seat(i) for i in range(4)]
    told = asked.read(msgspec.json.encode({"model": "m", **chat("system" * 400)}))

    def chosen(now_s: float) -> Seat:
        return policy.chooser(told, {}.get)(seats, now_s)

    served = closed_loop(chosen, lambda *_: (1.0, 200), 40, 2000)
    assert min(served[s] for s in seats) > 2000 / 4 / 1.5


def test_an_engine_that_was_started_anew_knows_nothing() -> None:
    policy = policy_of(model_config(policy="prefix"), random.Random(0))
    choose = policy.chooser(asked.read(msgspec.json.encode({"model": "m", "prompt": "x" * 2000})), {}.get)
    seats = [seat(0, in_flight=1), seat(1, in_flight=1)]
    first = choose(seats, 0.0)
    assert {choose(seats, 0.0) for _ in range(20)} == {first}
    first.engine.since_s = 5.0
    for _ in range(2):
        first.engine.sends(0.0)  # nothing but what it knows would draw the request to it
    assert choose(seats, 100.0) is not first


# What an engine has to do.


def test_what_an_engine_says_counts_for_a_second() -> None:
    unseen = Unseen()
    unseen.said(10.0, 4, 100.0)
    assert unseen.at(100.0 + SAID_S_MAX) == 6.0
    assert unseen.at(100.1 + SAID_S_MAX) == 0.0
    unseen.said(3.0, 4, 102.0)
    assert unseen.at(102.0) == 0.0


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 10)), max_size=60))
def test_errors_count_and_are_forgotten(told: list[tuple[bool, float]]) -> None:
    unseen, now_s = Unseen(), 0.0
    for good, after_s in told:
        now_s += after_s
        before = unseen.at(now_s)
        if good:
            unseen.worked()
            assert unseen.at(now_s) <= before
        else:
            unseen.erred(now_s)
            assert before < unseen.at(now_s) <= 1024
    assert unseen.at(now_s + 60.0) == 0.0


def shares(
    serve: Callable[[int], tuple[float, int]], clients: int = 20, total: int = 400, weights: list[float] | None = None
) -> list[float]:
    model = roster(random.Random(7), weights or [1.0, 1.0]).models["m"]
    choose = model.policy.chooser(asked.read(b'{"model":"m"}'), {}.get)

    def chosen(now_s: float) -> Seat:
        found = model.choose(now_s, (), choose)
        assert found is not None
        return found

    served = closed_loop(chosen, lambda s, _: serve(model.seats.index(s)), clients, total)
    return [served[s] / total for s in model.seats]


@pytest.mark.parametrize("clients", [8, 20, 64])
def test_an_engine_ten_times_slower_gets_its_ideal_share(clients: int) -> None:
    slow = shares(lambda i: ((1.0, 200), (0.1, 200))[i], clients, 2000)[0]
    assert abs(slow - 1 / 11) < 0.03


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_an_engine_that_refuses_at_once_is_no_black_hole(status: int) -> None:
    bad = shares(lambda i: ((0.001, status), (1.0, 200))[i])[0]
    assert bad * 400 < 15


def test_errors_of_the_clients_own_spread_as_other_requests_do() -> None:
    one = shares(lambda _: (0.1, 400))[0]
    assert 0.4 < one < 0.6


# Warming up.


def test_a_new_engine_gets_its_share_little_by_little() -> None:
    fresh = seat(0, 2.0, warm_up_s=10.0)
    fresh.engine.since_s = 100.0
    assert [fresh.share(100.0 + age_s) for age_s in (0.0, 1.0, 5.0, 10.0, 99.0)] == [0.2, 0.2, 1.0, 2.0, 2.0]
    assert seat(1, 3.0, warm_up_s=10.0).share(0.0) == 3.0


def test_an_empty_engine_does_not_get_the_herd() -> None:
    model = roster(random.Random(3), [1.0, 1.0]).models["m"]
    choose = model.policy.chooser(asked.read(b'{"model":"m"}'), {}.get)
    for _ in range(100):
        model.seats[0].engine.sends(0.0)
    model.seats[1].engine.since_s = 50.0
    for _ in range(100):
        chosen = model.choose(50.0, (), choose)
        assert chosen is not None
        chosen.engine.sends(0.0)
    assert 10 <= model.seats[1].engine.in_flight <= 20  # a tenth of the other's, and it had none


def test_an_engine_that_comes_back_warms_up_again() -> None:
    engine = seat(0).engine
    for now_s in (1.0, 2.0, 3.0):
        engine.failed(now_s, Trouble("no"))
    engine.answered(200, 20.0)
    assert engine.since_s == 20.0
    engine.answered(200, 21.0)
    assert engine.since_s == 20.0
