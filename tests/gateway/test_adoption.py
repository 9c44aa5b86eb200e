"""One configuration after another: seats are as the last one says, and engines that stay are the same ones."""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from withstand.gateway.address import origin_of
from withstand.gateway.config import Config, config_of
from withstand.gateway.engine import BOOTSTRAP_PORT, Engine
from withstand.gateway.roster import Model, Roster
from withstand.gateway.waiting import Lobby

URLS = [f"http://engine-{i}:80" for i in range(5)]

engines = st.fixed_dictionaries(
    {"url": st.sampled_from(URLS), "weight": st.sampled_from([0.0, 1.0, 3.0])},
    optional={"max_in_flight": st.integers(1, 9), "command": st.just(["serve"])},
)


@st.composite
def models(draw: st.DrawFn) -> dict[str, Any]:
    """One model, in any of the ways that there are."""
    told = draw(st.lists(engines, min_size=2, max_size=5, unique_by=lambda engine: engine["url"]))
    policy = draw(st.sampled_from(["round_robin", "prefix"]))
    style = draw(st.sampled_from([None, "vllm_nixl", "sglang"]))
    if style is None:
        return {"engines": told, "policy": policy}
    for i, engine in enumerate(told):
        engine["role"] = ["prefill", "decode"][i] if i < 2 else draw(st.sampled_from(["prefill", "decode"]))
        if style == "sglang" and engine["role"] == "prefill" and draw(st.booleans()):
            engine["bootstrap_port"] = 9001
    return {"engines": told, "policy": policy, "disaggregation": {"style": style}}


configs = st.dictionaries(st.sampled_from("ab"), models(), max_size=2).map(lambda told: config_of({"models": told}))


def are_as_told(model: Model, config: Config) -> None:
    told = config.models[model.name]
    pools = {None: model, "decode": model, "prefill": model.prefill}
    assert (model.prefill is None) == (told.disaggregation is None)
    for role in (None, "prefill", "decode"):
        wanted = [engine for engine in told.engines if engine.role == role]
        pool = pools[role]
        seats = [seat for seat in pool.seats if seat.role == role] if pool is not None else []
        assert [seat.engine.origin for seat in seats] == [engine.origin for engine in wanted]
        for seat, engine in zip(seats, wanted, strict=True):
            assert (seat.weight, seat.max_in_flight) == (engine.weight, engine.max_in_flight)
            assert seat.bootstrap_port == (engine.bootstrap_port or BOOTSTRAP_PORT)
    assert len(model.places()) == len(told.engines)


@given(st.lists(configs, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_seats_are_as_told_and_engines_that_stay_are_the_same(told: list[Config], dice: random.Random) -> None:
    roster = Roster(told[0], dice, Lobby(lambda _: None))
    for config in told[1:]:
        before = dict(roster.engines)
        for engine in before.values():
            while engine.in_flight:
                engine.rests()
            if dice.random() < 0.5:
                engine.sends(0.0)
            engine.draining = dice.random() < 0.5
        drained = {origin for origin, engine in before.items() if engine.draining and not engine.removed}
        roster.adopt(config, since_s=1.0)
        assert list(roster.models) == list(config.models)
        for model in roster.models.values():
            are_as_told(model, config)
        seated = {seat.engine.origin for model in roster.models.values() for seat in model.places()}
        for origin, engine in before.items():
            is_known = origin in roster.engines
            assert is_known == (origin in seated or engine.in_flight > 0), "it is forgotten with its last request"
            assert not is_known or roster.engines[origin] is engine
            assert engine.removed == (origin not in seated)
        assert {origin for origin in seated & drained if not roster.engines[origin].draining} == set()
        assert {e.origin for e in roster.engines.values() if e.process and e.process.told.command} == {
            engine.origin for model in config.models.values() for engine in model.engines if engine.command
        }


def test_a_pool_that_is_no_more_chooses_nobody() -> None:
    """Requests under way may still know it."""
    told = {"engines": [{"url": URLS[0], "role": "prefill"}, {"url": URLS[1], "role": "decode"}]}
    roster = Roster(
        config_of({"models": {"m": {**told, "disaggregation": {"style": "sglang"}}}}), random.Random(), Lobby(print)
    )
    pool = roster.models["m"].prefill
    assert pool is not None
    roster.adopt(config_of({"models": {"m": {"engines": [{"url": URLS[0]}, {"url": URLS[1]}]}}}))
    assert not pool.untried(0.0, ())
    assert [seat.engine.origin for seat in roster.models["m"].seats] == [origin_of(url) for url in URLS[:2]]
    assert all(isinstance(seat.engine, Engine) and seat.role is None for seat in roster.models["m"].seats)
