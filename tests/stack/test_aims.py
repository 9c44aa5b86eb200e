"""Where a plan's targets lead in a stack."""

from pathlib import Path
from typing import Any

import pytest

from withstand.errors import SpecError
from withstand.spec.stack import stack_of
from withstand.stack.aims import asked_as, asked_there, with_aims
from withstand.stack.blueprint import Blueprint, Place
from withstand.stack.composed import composed

NAMES = ("a", "b", "gateway", "agent", "edge", "edge-status")
URL = {name: f"http://127.0.0.1:{9000 + i}" for i, name in enumerate(NAMES)}
ENGINE = {"kind": "command", "args": ["x"]}


def whole(**more: Any) -> Blueprint:
    engines = {"a": ENGINE | {"served_as": "ma"}, "b": ENGINE | {"served_as": "mb"}}
    ports = {name: 9000 + i for i, name in enumerate(NAMES)}
    place = Place(folder=Path("/s"), python="p", ports=ports, threads=2, programs={"nginx": "/bin/nginx"})
    return composed(stack_of({"engines": engines, "gateway": {}, **more}, "s"), place)


def test_a_service_is_asked_where_it_listens_and_only_what_is_behind_it_is_watched() -> None:
    plan = {"targets": {"direct": {"service": "b"}, "hop": {"service": "gateway", "model": "mb"}}}
    targets = with_aims(plan, whole())["targets"]
    assert targets["direct"] == {"base_url": URL["b"], "model": "mb", "metrics_urls": [URL["b"] + "/metrics"]}
    assert (targets["hop"]["base_url"], targets["hop"]["model"]) == (URL["gateway"], "mb")
    assert targets["hop"]["metrics_urls"] == [URL["gateway"] + "/metrics", URL["b"] + "/metrics"]


def test_without_a_service_the_model_says_whether_the_agent_or_the_gateway_is_asked() -> None:
    blueprint = whole(agent={}, edge={})
    assert with_aims({}, blueprint)["target"]["base_url"] == URL["edge"] + "/agent"
    assert with_aims({}, blueprint, "mb")["target"]["base_url"] == URL["edge"]
    conf = next(p for p in blueprint.processes if p.name == "edge").files["edge.conf"]
    assert "location /agent/v1/ {" in conf
    assert "proxy_pass http://agent/v1/;" in conf


def test_an_engine_on_ray_is_asked_at_rays_door_for_its_model() -> None:
    engines = {name: {"kind": "vllm", "model": f"/models/m{name}"} for name in ("a", "b")}
    place = Place(folder=Path("/s"), python="p", ports={"ray": 9100, "ray-ready": 9101}, threads=2)
    stack = stack_of({"engines": engines, "runner": "ray", "ray": {"python": "r"}}, "s")
    target = with_aims({"target": {"service": "b"}}, composed(stack, place))["target"]
    assert (target["base_url"], target["model"]) == ("http://127.0.0.1:9100", "mb")
    assert target["metrics_urls"] == ["http://127.0.0.1:9101/metrics"]


def test_an_address_of_ones_own_stays() -> None:
    plan = {"target": {"base_url": "http://elsewhere"}}
    assert with_aims(plan, whole())["target"] == {"base_url": "http://elsewhere"}


def test_a_service_that_is_not_there_is_named() -> None:
    with pytest.raises(SpecError, match=r"no service 'c'.*plan\.target\.service"):
        with_aims({"target": {"service": "c"}}, whole())


@pytest.mark.parametrize(
    ("url", "model", "asked"),
    [
        (URL["a"], "ma", {"a"}),
        (URL["gateway"] + "/v1", "mb", {"b", "gateway"}),
        (URL["edge"].replace("127.0.0.1", "localhost"), "ma", {"a", "gateway", "edge"}),
        (URL["edge"] + "/agent", "agent", {"a", "b", "gateway", "agent", "edge"}),
        (URL["agent"], "agent", {"a", "b", "gateway", "agent"}),
        ("http://elsewhere:9002", "ma", set()),
        ("unix:/run/engine.sock", "ma", set()),
    ],
)
def test_which_services_a_request_goes_through(url: str, model: str, asked: set[str]) -> None:
    assert asked_there(whole(agent={}, edge={}), url, model) == asked


OWN: dict[str, Any] = {
    "workload": {"num_prompts": 1},
    "target": {"api_key_env": "KEY", "extra_body": {"x": 1}},
    "targets": {"direct": {"service": "a"}, "hop": {"service": "gateway"}},
}


@pytest.mark.parametrize(
    ("load", "asked"),
    [
        ({}, {"target": OWN["target"], "targets": OWN["targets"]}),
        (
            {"target": {"stream": False, "extra_body": {"y": 2}}},
            {
                "target": {"api_key_env": "KEY", "extra_body": {"x": 1, "y": 2}, "stream": False},
                "targets": OWN["targets"],
            },
        ),
        ({"target": {"service": "b"}}, {"target": {"service": "b"}}),
        ({"target": {"base_url": "http://x"}}, {"target": {"base_url": "http://x"}}),
        ({"targets": {"c": {"service": "b"}}}, {"targets": {"c": {"service": "b"}}}),
    ],
)
def test_another_plan_is_asked_of_the_same_unless_it_says_of_whom(load: dict[str, Any], asked: dict[str, Any]) -> None:
    found = asked_as({"seed": 1} | load, OWN)
    assert found == {"seed": 1} | asked
