"""Who asks the control plane for what there is not is told in a sentence what there is."""

from collections.abc import Callable

import msgspec
import pytest

from engines import Behave, Engine, answering
from gateways import Gateway, body, model, post
from withstand.gateway.control.mistakes import MUST_BE

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]


@pytest.mark.parametrize(
    ("method", "path", "told", "said"),
    [
        ("POST", "/admin/engines", {"model": "m"}, "The field 'url' is missing; give an engine's address, such as"),
        ("POST", "/admin/engines", {"model": "m", "url": 1}, "The field 'url' must be an engine's address"),
        ("PATCH", "/admin/engines", {"model": "m", "url": "u", "weight": -1}, "must be a number from 0 (no traffic)"),
        ("PATCH", "/admin/engines", {"model": "m", "url": "u", "weight": "2"}, "'weight' must be a number from 0"),
        ("PATCH", "/admin/engines", {"model": "m", "url": "u", "draining": 1}, "'draining' must be true or false."),
        ("POST", "/admin/engines", {"model": "m", "url": "http://u", "served_as": ""}, "must be the name that the"),
        ("POST", "/admin/engines", {"model": "m", "url": "u", "served": "a", "served_as": "b"}, "the same, and both"),
        ("GET", "/admin/usage?since=9999-99-99", None, "The field 'since' must be a day, such as 2026-11-01."),
        ("PATCH", "/admin/engines", [1], "The body must be a JSON object, with model, url, weight, max_in_flight"),
        ("DELETE", "/admin/engines?model=m", None, "The field 'url' is missing; give an engine's address"),
        ("GET", "/admin/usage?since=yesterday", None, "The field 'since' must be a day, such as 2026-11-01."),
        ("GET", "/admin/usage?since=%D9%A2026-11-01", None, "The field 'since' must be a day, such as 2026-11-01."),
        ("GET", "/admin/usage?untill=2026-11-01", None, "There is no field 'untill' (did you mean until?)"),
        ("GET", "/admin/usage?key=a&key=b", None, "The field 'key' is given 2 times; give it once."),
        ("GET", "/admin/usage?since=2026-11-02&until=2026-11-01", None, "'since' is 2026-11-02, later than 'until'"),
        ("GET", "/admin/engines?model=m", None, "There is no field 'model'; correct it, or leave it out."),
        ("POST", "/admin/reload?fast=1", None, "There is no field 'fast'; correct it, or leave it out."),
        ("DELETE", "/admin/engines?model=m&url=a&url=b", None, "The field 'url' is given 2 times; give it once."),
        ("DELETE", "/admin/engines?model=m&url=a&x=1", None, "There is no field 'x' (there are: model, url)"),
    ],
)
def test_a_wrong_question_is_told_of_in_a_sentence(
    gateway: Gateways, nobody: str, method: str, path: str, told: object, said: str
) -> None:
    status, answer = gateway(model(nobody)).control(method, path, told)
    assert (status, said in answer["error"]["message"]) == (422, True), answer


JSON = "content-type: application/json\r\n"


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize(
    ("told", "said"),
    [
        (b'{"model":"m","url":"http://\\ud800"}', "The field 'url' must be an engine's address, such as"),
        (b'{"model":"\\ud800","url":"http://a"}', "The field 'model' must be a model's name."),
        (b'{"model":"\xff"}', "The body is no JSON: it is not UTF-8; encode it so."),
        (b"[" * 100_000, "The body is nested too deeply; give a JSON object of plain values."),
        (b'{"weight":%b}' % (b"9" * 5000), "The body has a number of too many digits; correct it."),
    ],
)
def test_a_body_that_nobody_can_read_is_told_why(
    gateway: Gateways, nobody: str, method: str, told: bytes, said: str
) -> None:
    client = gateway(model(nobody)).client()
    answer = client.send(post(told, "/admin/engines", JSON).replace(b"POST", method.encode(), 1)).answer()
    assert (400 <= answer.status < 500, answer.error["message"][: len(said)]) == (True, said)


def test_an_empty_body_is_told_to_be_empty(gateway: Gateways, nobody: str) -> None:
    answer = gateway(model(nobody)).ask(b"")
    told = "The body must be a JSON object that names a model: it is empty."
    assert (answer.status, answer.error["message"]) == (400, told)


def test_a_body_that_is_no_json_is_told_where(gateway: Gateways, nobody: str) -> None:
    answer = gateway(model(nobody)).ask(b"{no}", "/admin/engines", more="content-type: application/json\r\n")
    assert (answer.status, answer.error["message"].partition(" (character 1)")[0]) == (
        422,
        "The body is no JSON: expecting property name enclosed in double quotes",
    )


def test_all_fields_have_their_cure(gateway: Gateways, nobody: str) -> None:
    schemas = gateway(model(nobody)).control("GET", "/openapi.json")[1]["components"]["schemas"]
    fields = {field for kind in ("NewEngine", "Change") for field in schemas[kind]["properties"]}
    assert "url" in fields
    assert fields <= MUST_BE.keys()


@pytest.mark.parametrize("field", ["served", "served_as"])
def test_the_models_name_at_an_engine_may_be_called_as_a_stack_has_it(
    engine: Engines, gateway: Gateways, field: str
) -> None:
    one = engine(answering())
    gw = gateway(model())
    status, seat = gw.control("POST", "/admin/engines", {"model": "m", "url": one.url, field: "theirs"})
    assert (status, seat["served"]) == (201, "theirs")
    gw.ask(body())
    assert msgspec.json.decode(one.seen[-1].body)["model"] == "theirs"


def test_what_there_is_not_is_told_with_what_there_is(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    gw = gateway(model(one.url))
    for method, told, said in (
        (
            "POST",
            {"model": "no", "url": one.url},
            "There is no model 'no', only m; a new one comes with the file and a reload.",
        ),
        ("PATCH", {"model": "m", "url": "10.0.0.1:1"}, f"The model 'm' has no engine 10.0.0.1:1; it has {one.name}."),
        ("PATCH", {"model": "m", "url": "http://10.0.0.1:1"}, f"no engine http://10.0.0.1:1; it has {one.name}."),
    ):
        status, answer = gw.control(method, "/admin/engines", told)
        assert (status, said in answer["error"]["message"]) == (404, True), answer
