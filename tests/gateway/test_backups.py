"""Engines that are asked only where the others cannot be: another model behind one's own, as a rule."""

from collections.abc import Callable

import pytest

from engines import Behave, Engine, answering, hanging_up, silent, whole
from gateways import Gateway, body, model, post
from withstand.errors import SpecError
from withstand.gateway.config import config_of

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]

BEHIND = '\n[[models.m.engines]]\nurl = "{}"\nmodel = "smaller"\nbackup = true\n'


@pytest.mark.parametrize(
    "fails",
    [answering(whole(status=status)) for status in (b"429 Too Many", b"503 No", b"502 No")] + [hanging_up()],
    ids=["429", "503", "502", "hangs up"],
)
def test_what_the_others_fail_goes_to_it_with_its_model(fails: Behave, engine: Engines, gateway: Gateways) -> None:
    one, behind = engine(fails), engine(answering())
    gw = gateway(model(one.url) + BEHIND.format(behind.url))
    for _ in range(5):  # and while the other is left alone, too
        answer = gw.ask(body())
        assert (answer.status, answer.header("x-withstand-engine")) == (200, behind.name)
    assert b'"smaller"' in behind.seen[0].body
    assert one.seen
    assert [seat["backup"] for seat in gw.control("GET", "/admin/engines")[1]["m"]] == [False, True]


def test_whoever_is_gone_is_asked_first_again_when_back(engine: Engines, gateway: Gateways) -> None:
    one, behind = engine(answering()), engine(answering())
    gw = gateway(model(one.url, more="warm_up_s = 0") + BEHIND.format(behind.url))
    assert gw.ask(body()).header("x-withstand-engine") == one.name
    drained = {"model": "m", "url": one.url, "draining": True}
    assert gw.control("PATCH", "/admin/engines", drained)[0] == 200
    assert gw.ask(body()).header("x-withstand-engine") == behind.name
    assert gw.control("PATCH", "/admin/engines", {**drained, "draining": False})[0] == 200
    assert {gw.ask(body()).header("x-withstand-engine") for _ in range(5)} == {one.name}


def test_for_others_that_are_full_requests_wait(engine: Engines, gateway: Gateways) -> None:
    one, behind = engine(silent), engine(answering())
    gw = gateway(
        model(one.url, more="max_in_flight = 1\nqueue = {requests = 1, wait_s = 0.2}") + BEHIND.format(behind.url)
    )
    first = gw.client().send(post(body()))
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 1)
    assert gw.ask(body()).error["code"] == "queue_timeout"
    first.close()
    assert not behind.seen


def test_there_is_something_that_it_backs_up() -> None:
    alone = {"models": {"m": {"engines": [{"url": "http://127.0.0.1:1", "backup": True}]}}}
    with pytest.raises(SpecError, match=r"all are backups.*\$\.models\.m\.engines"):
        config_of(alone)
