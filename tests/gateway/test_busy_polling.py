"""A gateway that never sleeps serves like any other, and ends like any other."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engines import Behave, Engine, answering
from gateways import Gateway, body, model

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]
BUSY = "busy_polling = true\n"
WATCHED_S = 0.5

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="/proc tells how often a process slept")


def sleeps(gw: Gateway) -> int:
    """How often it gave its core away while nobody asked for anything."""

    def so_far() -> int:
        status = Path(f"/proc/{gw.process.pid}/status").read_text()
        found = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE)
        assert found is not None
        return int(found[1])

    before = so_far()
    time.sleep(WATCHED_S)
    return so_far() - before


def test_it_never_sleeps_and_serves_all_the_same(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(BUSY + model(engine(answering()).url))
    assert gw.ask(body()).status == 200
    assert sleeps(gw) <= 1
    assert gw.ask(body()).status == 200


def test_others_sleep(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(model(engine(answering()).url))
    assert gw.ask(body()).status == 200
    assert sleeps(gw) > 2


def test_to_begin_with_it_takes_a_restart(engine: Engines, gateway: Gateways, tmp_path: Path) -> None:
    told = model(engine(answering()).url)
    gw = gateway(told)
    file = tmp_path / "gateway.toml"
    file.write_text('listen = "127.0.0.1:0"\n' + BUSY + told, "utf-8")
    status, answer = gw.control("POST", "/admin/reload", {})
    assert status == 400
    assert "`$.busy_polling` is true now and was false; that takes a restart." in answer["error"]["message"]
    assert gw.ask(body()).status == 200
