"""A gateway that never sleeps serves like any other, and ends like any other."""

from collections.abc import Callable
from pathlib import Path

import pytest

from engines import Behave, Engine, answering
from gateways import Gateway, body, model

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]
BUSY = "busy_polling = true\n"

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="/proc tells how often a process slept")


def test_it_never_sleeps_and_serves_all_the_same(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(BUSY + model(engine(answering()).url))
    assert gw.ask(body()).status == 200
    assert gw.sleeps() <= 1
    assert gw.ask(body()).status == 200


def test_others_sleep(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(model(engine(answering()).url))
    assert gw.ask(body()).status == 200
    assert gw.sleeps() > 2


def test_to_begin_with_it_takes_a_restart(engine: Engines, gateway: Gateways, tmp_path: Path) -> None:
    told = model(engine(answering()).url)
    gw = gateway(told)
    file = tmp_path / "gateway.toml"
    file.write_text('listen = "127.0.0.1:0"\n' + BUSY + told, "utf-8")
    status, answer = gw.control("POST", "/admin/reload", {})
    assert status == 400
    assert "`$.busy_polling` is true now and was false; that takes a restart." in answer["error"]["message"]
    assert gw.ask(body()).status == 200
