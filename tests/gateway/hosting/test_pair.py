"""Prefill and decode engines that the gateway starts: both are there before a request goes, and go together."""

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gateways import Client, Gateway, body, post
from hosted import Hosted, runs

Gateways = Callable[[str], Gateway]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes by /proc")


class Pair:
    """A model of two engines."""

    def __init__(self, folder: Path, prefill_does: str = "prefill") -> None:
        self.state = folder / "state"
        self.prefill = Hosted(folder / "prefill", prefill_does)
        self.decode = Hosted(folder / "decode")

    def toml(self, more: str = "", fallback: str = "false") -> str:
        """``more`` is of both engines."""
        return (
            f"[host]\nstate = '{self.state}'\n"
            f'[models.m.disaggregation]\nstyle = "vllm_nixl"\nfallback = {fallback}\n'
            + self.prefill.toml(more=f'role = "prefill"\n{more}')
            + self.decode.toml(more=f'role = "decode"\n{more}')
        )


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def asked(gateway: Gateway) -> Client:
    return gateway.client().send(post(body(stream=True, messages=[])))


def is_ready(gateway: Gateway) -> bool:
    ready: bool = gateway.control("GET", "/ready")[1]["models"]["m"]
    return ready


def test_a_herd_has_both_started_once(gateway: Gateways, pair: Pair) -> None:
    for each in (pair.prefill, pair.decode):
        each.tell("cold")
    gw = gateway(pair.toml("idle_s = 0.3"))
    assert is_ready(gw)
    herd = [asked(gw) for _ in range(10)]
    for each in (pair.decode, pair.prefill):
        each.until_started()  # both, though neither is ready
    for each in (pair.decode, pair.prefill):
        each.untell("cold")
    for answer in [client.answer() for client in herd]:
        assert (answer.status, answer.complete) == (200, True)
        assert answer.header("x-withstand-prefill") == pair.prefill.name
        assert re.search(r"cold;dur=[\d.]+, prefill;dur=", answer.header("server-timing") or "")
    assert (len(pair.prefill.pids), len(pair.decode.pids)) == (1, 1)
    for each in (pair.prefill, pair.decode):
        each.until_gone()


@pytest.mark.parametrize("slow", ["prefill", "decode"])
def test_the_one_that_is_up_waits_for_the_other(gateway: Gateways, pair: Pair, slow: str) -> None:
    late, early = (pair.prefill, pair.decode) if slow == "prefill" else (pair.decode, pair.prefill)
    late.tell("cold")
    gw = gateway(pair.toml("idle_s = 0.1"))
    client = asked(gw)
    gw.until(f'engine_up{{engine="{early.name}"}}', 1)
    time.sleep(0.5)  # far longer than idle_s
    assert runs(early.pids[0])
    late.untell("cold")
    assert client.answer().header("x-withstand-prefill") == pair.prefill.name
    assert (len(early.pids), len(late.pids)) == (1, 1)


def test_prefill_that_does_not_start_is_told(gateway: Gateways, tmp_path: Path) -> None:
    pair = Pair(tmp_path, "refuse")
    gw = gateway(pair.toml())
    answer = asked(gw).answer()
    assert (answer.status, answer.error["code"]) == (503, "engine_not_started")
    assert f"{pair.prefill.name} ended at its start (exit code 1): error: no such model" in answer.error["message"]


def test_decode_does_it_alone_where_prefill_does_not_start(gateway: Gateways, tmp_path: Path) -> None:
    pair = Pair(tmp_path, "refuse")
    gw = gateway(pair.toml(fallback="true"))
    answer = asked(gw).answer()
    assert (answer.status, answer.complete) == (200, True)
    assert answer.header("x-withstand-prefill") == "none; reason=no_prefill"


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_one_that_ended_is_started_again(gateway: Gateways, pair: Pair, role: str) -> None:
    gw = gateway(pair.toml())
    assert asked(gw).answer().status == 200
    killed = pair.prefill if role == "prefill" else pair.decode
    killed.kill()
    answer = asked(gw).answer()  # before or after it is known that it ended
    assert (answer.status, answer.header("x-withstand-prefill")) == (200, pair.prefill.name)
    assert len(killed.pids) == 2


def test_decode_that_ends_while_prefill_goes_on_is_waited_for(gateway: Gateways, pair: Pair) -> None:
    gw = gateway(pair.toml())
    assert asked(gw).answer().status == 200
    pair.prefill.tell("hold")
    client = asked(gw)
    gw.until(f'engine_in_flight{{engine="{pair.prefill.name}"}}', 1)
    pair.decode.kill()
    gw.until(f'engine_up{{engine="{pair.decode.name}"}}', 0)
    pair.prefill.untell("hold")
    answer = client.answer()
    assert (answer.status, answer.header("x-withstand-prefill")) == (200, pair.prefill.name)
    assert len(pair.decode.pids) == 2


def test_both_make_room_for_another_model_and_come_back(gateway: Gateways, pair: Pair, tmp_path: Path) -> None:
    other = Hosted(tmp_path / "other")
    toml = pair.toml("memory_gb = 5").replace("[host]\n", "[host]\nmemory_gb = 10\nresidence_s = 0\n")
    gw = gateway(toml + other.toml("other", "memory_gb = 10"))
    for model in ("m", "other", "m"):
        assert gw.ask(body(model, stream=True, messages=[])).status == 200
    assert (len(pair.prefill.pids), len(pair.decode.pids), len(other.pids)) == (2, 2, 1)
