"""Scale to zero and turns in memory, through a whole gateway: engines are real processes, and so is the gateway."""

import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gateways import Client, Gateway, body, post
from hosted import Hosted, runs, until

Gateways = Callable[[str], Gateway]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes by /proc")


@pytest.fixture
def host(tmp_path: Path) -> str:
    return f"[host]\nstate = '{tmp_path / 'state'}'\n"


def asked(gateway: Gateway, model: str = "m") -> Client:
    return gateway.client().send(post(body(model, stream=True)))


def is_whole(raw: bytes) -> bool:
    return raw.endswith(b"0\r\n\r\n") and raw.count(b"content") == 2 and b"[DONE]" in raw


def test_the_first_request_starts_it_and_idleness_stops_it(gateway: Gateways, tmp_path: Path, host: str) -> None:
    engine = Hosted(tmp_path / "e")
    gw = gateway(host + engine.toml(more="idle_s = 0.3"))
    up = f'engine_up{{engine="{engine.name}"}}'
    assert gw.metrics()[up] == 0
    assert not engine.pids
    answer = asked(gw).answer()
    assert answer.status == 200
    assert is_whole(answer.raw)
    timing = answer.header("server-timing") or ""
    cold = re.search(r"cold;dur=([\d.]+)", timing)
    assert cold is not None
    assert float(cold[1]) > 0
    gw.until(up, 0)
    engine.until_gone()
    metrics = gw.metrics()
    count = f'cold_start_seconds_count{{engine="{engine.name}"}}'
    assert metrics[count] == 1
    assert metrics[f'cold_start_seconds_sum{{engine="{engine.name}"}}'] >= float(cold[1]) / 1e3 * 0.5
    assert is_whole(asked(gw).answer().raw)
    assert "cold" not in (gw.ask(body()).header("server-timing") or "") or len(engine.pids) == 3
    assert gw.metrics()[count] >= 2


def test_a_herd_starts_it_once(gateway: Gateways, tmp_path: Path, host: str) -> None:
    engine = Hosted(tmp_path / "e")
    engine.tell("cold")
    gw = gateway(host + engine.toml())
    herd = [asked(gw) for _ in range(40)]
    gw.until('queued{model="m"}', 40)
    engine.until_started()
    engine.untell("cold")
    assert [client.answer().status for client in herd] == [200] * 40
    assert len(engine.pids) == 1


def test_nobody_is_cut_off_by_idleness(gateway: Gateways, tmp_path: Path, host: str) -> None:
    engine = Hosted(tmp_path / "e")
    engine.tell("hold")
    gw = gateway(host + engine.toml(more="idle_s = 0.05"))
    client = asked(gw)
    client.read_until(b"content")
    time.sleep(0.5)  # far longer than idle_s
    assert runs(engine.pids[0])
    engine.untell("hold")
    assert is_whole(client.answer().raw)
    engine.until_gone()


def test_a_start_that_fails_is_told_to_all_who_wait(gateway: Gateways, tmp_path: Path, host: str) -> None:
    engine = Hosted(tmp_path / "e", "refuse")
    gw = gateway(host + engine.toml(more='env = { ENGINE_KEY = "tell-nobody" }'))
    for client in [asked(gw) for _ in range(3)]:
        answer = client.answer()
        assert answer.status == 503
        assert answer.error["code"] == "engine_not_started"
        assert "error: no such model; the key was ***" in answer.error["message"]
        assert int(answer.header("retry-after") or 0) >= 1
    before = len(engine.pids)
    assert gw.ask(body()).status == 503, "at once, while it is left alone"
    assert len(engine.pids) <= before + 1


def test_a_start_that_does_not_end_is_told_to_who_waits(gateway: Gateways, tmp_path: Path, host: str) -> None:
    engine = Hosted(tmp_path / "e", "never")
    gw = gateway(host + engine.toml(more="start_timeout_s = 0.5"))
    error = gw.ask(body()).error
    assert error["code"] == "engine_not_started"
    assert "was not ready within 0.5 s" in error["message"]


def test_who_may_wait_for_less_than_a_start_takes_is_told_so(gateway: Gateways, tmp_path: Path, host: str) -> None:
    engine = Hosted(tmp_path / "e", "never")
    gw = gateway(host + "[models.m]\nqueue = {wait_s = 0.3}\n" + engine.toml())
    error = gw.ask(body()).error
    assert error["code"] == "engine_not_started"
    assert error["message"].startswith("No engine of `m` was ready in time; ")


def test_who_leaves_while_it_starts_is_not_waited_for(gateway: Gateways, tmp_path: Path, host: str) -> None:
    engine = Hosted(tmp_path / "e")
    engine.tell("cold")
    gw = gateway(host + engine.toml(more="idle_s = 0.1"))
    client = asked(gw)
    engine.until_started()
    client.close()
    gw.until('queued{model="m"}', 0)
    engine.untell("cold")
    engine.until_gone()
    assert gw.metrics()["requests_in_flight"] == 0


def test_one_that_crashes_is_started_again(gateway: Gateways, tmp_path: Path, host: str) -> None:
    engine = Hosted(tmp_path / "e")
    gw = gateway(host + engine.toml())
    assert asked(gw).answer().status == 200
    engine.kill()
    assert gw.ask(body()).status == 200, "before or after it is known that it ended"
    assert len(engine.pids) == 2
    engine.tell("crash")
    assert gw.ask(body()).status in {502, 503}, "a quiet connection that dies is tried once more"
    gw.until(f'engine_up{{engine="{engine.name}"}}', 0)
    answer = gw.ask(body())
    assert answer.status == 503
    assert "ended by itself (exit code 3): fatal: this was too much" in answer.error["message"]
    engine.untell("crash")
    until(lambda: gw.ask(body()).status == 200, "it never came back")


def both(tmp_path: Path, more: str = "") -> tuple[Hosted, Hosted, str]:
    a, b = Hosted(tmp_path / "a"), Hosted(tmp_path / "b")
    memory = "memory_gb = 6\n" + more
    return a, b, "memory_gb = 10\nresidence_s = 0\n" + a.toml("a", memory) + b.toml("b", memory)


def test_more_models_than_fit_take_turns(gateway: Gateways, tmp_path: Path, host: str) -> None:
    a, b, toml = both(tmp_path)
    gw = gateway(host + toml)
    for model in "abab":
        assert asked(gw, model).answer().status == 200
        assert sum(map(runs, a.pids + b.pids)) <= 1
    assert (len(a.pids), len(b.pids)) == (2, 2)


def test_a_busy_one_is_waited_for_and_takes_nothing_new(gateway: Gateways, tmp_path: Path, host: str) -> None:
    a, b, toml = both(tmp_path)
    a.tell("hold")
    gw = gateway(host + toml)
    first = asked(gw, "a")
    first.read_until(b"content")
    other = asked(gw, "b")
    gw.until('queued{model="b"}', 1)
    second = asked(gw, "a")
    gw.until('queued{model="a"}', 1)
    assert not b.pids
    a.untell("hold")
    assert is_whole(first.answer().raw)
    assert is_whole(other.answer().raw)
    assert is_whole(second.answer().raw)
    assert (len(a.pids), len(b.pids)) == (2, 1)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_engines_end_with_their_gateway(tmp_path: Path, host: str, number: signal.Signals) -> None:
    engine = Hosted(tmp_path / "e")
    gw = Gateway(tmp_path, host + engine.toml())
    assert asked(gw).answer().status == 200
    gw.process.send_signal(number)
    gw.process.wait(30)
    gw.stop()
    engine.until_gone()


def test_a_gateway_that_was_killed_is_followed_by_one_that_serves(tmp_path: Path, host: str) -> None:
    """The old engine is still on its way out, and holds the port."""
    engine = Hosted(tmp_path / "e")
    first = Gateway(tmp_path, host + engine.toml())
    assert asked(first).answer().status == 200
    first.process.kill()
    first.stop()
    second = Gateway(tmp_path, host + engine.toml())
    assert asked(second).answer().status == 200
    assert not second.stop()
    engine.until_gone()
    assert len(engine.pids) == 2
