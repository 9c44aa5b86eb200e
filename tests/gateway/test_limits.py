"""Keys' limits, budgets and usage, through a real gateway."""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from engines import EVENT, Behave, Engine, answering, stuck, whole
from gateways import PATIENCE_S, Client, Gateway, body, model, post
from money import ADMIN, ENDING, bearer, key, row_of, rows, spends, streams, toml, usage

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]

ALICE = bearer("sk-alice")


def test_requests_are_limited_and_told_in_headers(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(toml(engine(spends()).url, "key_limits.rpm = 2\n", "limits.tpm = 100000"))
    first, second, third = (gw.ask(body(), more=ALICE) for _ in range(3))
    assert (first.status, second.status, third.status) == (200, 200, 429)
    assert first.header("x-ratelimit-limit-requests") == "2"
    assert [each.header("x-ratelimit-remaining-requests") for each in (first, second, third)] == ["1", "0", "0"]
    assert first.header("x-ratelimit-limit-tokens") == "100000"
    assert 0 < int(third.header("retry-after") or 0) <= 61
    assert third.error["code"] == "rate_limit_exceeded"
    assert gw.ask(body(), more=bearer("sk-root")).header("x-ratelimit-remaining-requests") == "1"
    assert gw.metrics()['key_limited_total{key="alice",limit="requests"}'] == 1
    assert row_of(gw, "alice", 2)["prompt_tokens"] == 20


@pytest.mark.parametrize("path", ["/tokenize", "/detokenize", "/v1/messages/count_tokens"])
def test_where_no_model_runs_no_tokens_and_no_money_are_taken(
    engine: Engines, gateway: Gateways, tmp_path: Path, path: str
) -> None:
    """A budget that is spent is no reason either; a limit of requests is."""
    limits = 'limits = {rpm = 4, tpm = 300}\nbudget = {usd = 0.000001, per = "day"}'
    gw = gateway(toml(engine(spends(prompt=200)).url, f'state = "{tmp_path / "state"}"\n', limits))
    assert [gw.ask(body(prompt="x" * 4000), path, more=ALICE).status for _ in range(2)] == [200, 200]
    used = row_of(gw, "alice", 2)
    assert (used["prompt_tokens"], used["completion_tokens"], used["cost_usd"], used["estimated"]) == (0, 0, 0, 0)
    assert gw.ask(body(max_tokens=5), more=ALICE).header("x-ratelimit-remaining-tokens") is not None
    row_of(gw, "alice", 3)
    assert gw.ask(body(max_tokens=5), more=ALICE).error["code"] == "insufficient_quota"
    assert [gw.ask(body(), path, more=ALICE).status for _ in range(2)] == [200, 429]


def test_anthropics_clients_are_told_in_their_form(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(toml(engine(spends()).url, "", "limits.rpm = 1"))
    first, second = (gw.ask(body(), "/v1/messages", more="X-Api-Key: sk-alice\r\n") for _ in range(2))
    assert first.header("anthropic-ratelimit-requests-remaining") == "0"
    assert first.header("x-ratelimit-limit-requests") is None
    assert (second.header("anthropic-ratelimit-requests-reset") or "").endswith("Z")
    assert (second.status, second.json["type"], second.error["type"]) == (429, "error", "rate_limit_error")


def test_refusals_of_a_limited_key_tell_its_limits_and_take_nothing(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(toml(engine(spends()).url, "", "limits.rpm = 1"))
    for content in (body("other"), b"no json"):
        assert gw.ask(content, more=ALICE).header("x-ratelimit-remaining-requests") == "1"
    assert gw.ask(body(), more=ALICE).status == 200


def test_tokens_are_held_by_estimate_and_settled_by_usage(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(toml(engine(spends(10, 5)).url, "", "limits.tpm = 1000"))
    first = gw.ask(body(max_tokens=900), more=ALICE)
    assert int(first.header("x-ratelimit-remaining-tokens") or 0) < 100
    second = gw.ask(body(max_tokens=10), more=ALICE)
    assert second.status == 200, "what the first held and did not use is free again"
    assert gw.ask(body(max_tokens=999), more=ALICE).error["type"] == "tokens"


def test_a_request_that_never_fits_is_told_so_with_the_numbers(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(toml(engine(spends(10, 5)).url, "", "limits.tpm = 100"))
    for content in (body(messages="x" * 2000), body(max_tokens=500)):
        answer = gw.ask(content, more=ALICE)
        assert (answer.status, answer.header("retry-after"), answer.header("x-should-retry")) == (429, None, "false")
        assert (answer.error["type"], answer.error["code"]) == ("tokens", "rate_limit_exceeded")
        assert "too large" in answer.error["message"]
        assert "100 tokens in a minute; 50" in answer.error["message"]
    assert gw.ask(body(), more=ALICE).status == 200, "what is only assumed of the answer turns nobody away"
    late = gw.ask(body(max_tokens=90), more=ALICE)
    assert late.header("retry-after")
    assert "is held to take 9" in late.error["message"]


def test_a_client_that_leaves_frees_its_place_and_pays_for_what_was_done(engine: Engines, gateway: Gateways) -> None:
    one = engine(streams(50))
    gw = gateway(toml(one.url, "", "limits.concurrency = 1"))
    client = gw.client().send(post(body(stream=True, max_tokens=500), more=ALICE))
    while client._rest.count(EVENT) < 50:
        assert client._more()
    assert gw.ask(body(), more=ALICE).error["type"] == "concurrency"
    client.close()
    told = row_of(gw, "alice", 1)
    assert (told["estimated"], told["completion_tokens"]) == (1, 47)
    assert told["prompt_tokens"] > 0
    gw.until("requests_in_flight", 0)
    one.behave = spends()
    assert gw.ask(body(), more=ALICE).status == 200


def test_a_client_that_leaves_in_prefill_pays_its_prompt(engine: Engines, gateway: Gateways) -> None:
    one = engine(stuck())
    gw = gateway(toml(one.url))
    content = body(messages="x" * 4000)
    client = gw.client().send(post(content, more=ALICE))
    gw.until("requests_in_flight", 1)
    client.close()
    assert row_of(gw, "alice", 1)["prompt_tokens"] == len(content) // 4


def test_streams_are_asked_for_usage_only_where_that_is_configured(engine: Engines, gateway: Gateways) -> None:
    one = engine(streams(13, ENDING))
    content = body(stream=True)
    gw = gateway(toml(one.url))
    assert b"usage" not in gw.ask(content, more=ALICE).raw
    assert one.seen[0].body == content
    assert row_of(gw, "alice", 1)["completion_tokens"] == 11  # 13 and [DONE], less three
    gw = gateway(toml(one.url, "usage.ask = true\n"))
    assert b'"completion_tokens":3' in gw.ask(content, more=ALICE).raw
    assert one.seen[1].json == {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
    told = row_of(gw, "alice", 1)
    assert (told["prompt_tokens"], told["completion_tokens"], told["estimated"]) == (7, 3, 0)


def test_engines_that_fail_cost_nothing(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(toml(engine(answering(whole(usage(), b"500 Oh"))).url, "", "limits = { tpm = 1000, concurrency = 1 }"))
    for _ in range(3):
        assert gw.ask(body(), more=ALICE).status == 500
    told = row_of(gw, "alice", 3)
    assert (told["prompt_tokens"], told["completion_tokens"], told["cost_usd"]) == (0, 0, 0)


def test_requests_that_nobody_has_served_are_not_counted_as_used(
    engine: Engines, gateway: Gateways, nobody: str
) -> None:
    more = "\nmax_in_flight = 1\n"
    stuck_one = engine(stuck())
    gw = gateway(toml(nobody) + model(stuck_one.url, name="full", more=more))
    assert gw.ask(body(), more=ALICE).status == 503
    client = gw.client().send(post(body("full"), more=ALICE))
    gw.until("requests_in_flight", 1)
    assert gw.ask(body("full"), more=ALICE).error["code"] == "queue_full"
    assert rows(gw, "?key=alice") == []
    client.close()
    assert row_of(gw, "alice", 1)["model"] == "full"


def test_a_model_without_a_price_costs_nothing_that_is_known(
    engine: Engines, gateway: Gateways, tmp_path: Path
) -> None:
    one = engine(spends())
    gw = gateway(toml(one.url) + model(one.url, name="b") + f'[log]\npath = "{tmp_path}/log"\n')
    gw.ask(body("b"), more=ALICE)
    gw.ask(body(), more=ALICE)
    gw.stop()
    told = [msgspec.json.decode(line) for line in (tmp_path / "log").read_bytes().splitlines()]
    assert [(line["cost_usd"], line["estimated"]) for line in told] == [(None, False), (0.02, False)]


def test_a_budget_is_kept_over_restarts_and_between_processes(
    engine: Engines, gateway: Gateways, tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = tmp_path_factory.mktemp("state") / "usage.sqlite3"
    # 10 prompt tokens, 4 of them cached, and 5 made: 6 x 0.001 + 4 x 0.0001 + 5 x 0.002 = 0.0164 USD
    one = engine(spends(10, 5, 4))
    budget = 'budget = { usd = 0.03, per = "month" }'
    text = toml(one.url, f'state = "{state}"\n', budget) + model(one.url, name="free") + "[prices.free]\ninput = 0\n"
    gw, other = gateway(text), gateway(text)
    for _ in range(2):
        assert gw.ask(body(), more=ALICE).status == 200
    refused = gw.ask(body(), more=ALICE)
    assert (refused.status, refused.error["code"]) == (429, "insufficient_quota")
    assert "spent its 0.03 USD for this month (UTC)" in refused.error["message"]
    assert refused.header("x-should-retry") == "false"
    assert row_of(other, "alice", 2)["cost_usd"] == pytest.approx(0.0328)
    gw.process.kill()
    until_refused(other)
    assert other.ask(body(), more=bearer("sk-root")).status == 200
    other.stop()
    assert gateway(text).ask(body(), more=ALICE).status == 429


def until_refused(gw: Gateway) -> None:
    """By what another process has spent: this model costs nothing."""
    end_s = time.monotonic() + PATIENCE_S
    while gw.ask(body("free"), more=ALICE).status == 200:
        assert time.monotonic() < end_s


def test_what_is_under_way_counts_for_a_budget(
    engine: Engines, gateway: Gateways, tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = tmp_path_factory.mktemp("state") / "usage.sqlite3"
    gw = gateway(toml(engine(stuck()).url, f'state = "{state}"\n', 'budget = { usd = 1, per = "total" }'))
    gw.client().send(post(body(max_tokens=1000), more=ALICE))
    gw.until("requests_in_flight", 1)
    assert gw.ask(body(max_tokens=1), more=ALICE).error["code"] == "insufficient_quota"


def test_usage_is_for_who_administers_and_can_be_picked(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(toml(engine(spends()).url))
    assert gw.control("GET", "/admin/usage", authorization="Bearer sk-alice")[0] == 403
    gw.ask(body(), more=ALICE)
    day = row_of(gw, "alice", 1)["day"]
    assert len(rows(gw, f"?since={day}&until={day}&model=m")) == 1
    assert rows(gw, "?until=2000-01-01") == rows(gw, "?key=bob") == rows(gw, "?model=x") == []
    assert gw.control("GET", "/admin/usage?since=yesterday", **ADMIN)[0] == 422


def test_without_keys_the_limits_are_everybodys(engine: Engines, gateway: Gateways) -> None:
    gw = gateway("key_limits.rpm = 1\n" + model(engine(spends()).url))
    assert [gw.ask(body()).status for _ in range(2)] == [200, 429]
    assert rows_without_key(gw) == [("", 1, 10)]


def rows_without_key(gw: Gateway) -> list[tuple[str, int, int]]:
    return [
        (row["key"], row["requests"], row["prompt_tokens"]) for row in gw.control("GET", "/admin/usage")[1]["usage"]
    ]


def test_many_at_once_are_never_more_than_the_limit(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(toml(engine(spends()).url, "", "limits = { rpm = 20, concurrency = 5 }"))
    clients: list[Client] = [gw.client() for _ in range(40)]
    for client in clients:
        client.send(post(body(), more=ALICE))
    statuses = [client.answer().status for client in clients]
    assert 5 <= statuses.count(200) <= 20
    assert statuses.count(200) + statuses.count(429) == 40
    assert row_of(gw, "alice", statuses.count(200))["completion_tokens"] == 5 * statuses.count(200)


def test_owners_may_have_any_name(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(key('"a b\\"c"', "sk-odd", "limits.rpm = 9") + model(engine(spends()).url))
    assert gw.ask(body(), more=bearer("sk-odd")).header("x-ratelimit-remaining-requests") == "8"
    assert gw.metrics()['key_tokens_total{key="a b\\"c",kind="prompt"}'] == 10
