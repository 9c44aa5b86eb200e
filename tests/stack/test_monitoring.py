"""Monitoring as Prometheus really runs it: rules that hold, and a dashboard in which nothing is empty."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from html import escape
from pathlib import Path
from typing import Any

import pytest

from withstand.agent.counts import Counts
from withstand.gateway.routes import ROUTES
from withstand.spec.stack import stack_of
from withstand.stack.blueprint import Place
from withstand.stack.composed import composed, service_names
from withstand.stack.monitoring import EXPORTERS, LIMITS, dashboard, rules
from withstand.stack.programs import found_program
from withstand.stack.queries import ALERTS, PANELS, RULES

PROMTOOL = found_program("promtool")
NEEDED = ("prometheus", "nginx", "prometheus-node-exporter", "prometheus-nginx-exporter")
ENGINE = str(Path(__file__).parents[1] / "support" / "vllm_like.py")
PATIENCE_S = 120.0

promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
TREE: dict[str, Any] = {
    "name": "watched",
    "engines": {"a": {"kind": "command", "args": [sys.executable, ENGINE, "{port}"], "served_as": "m"}},
    "gateway": {},
    "edge": {"workers": 1},
    "monitoring": {"scrape_s": 0.5},
    "plan": {
        "workload": {
            "dataset": "random",
            "num_prompts": 100,
            "options": {"input_len": 8, "output_len": 8},
        },
        "stages": [{"arrivals": {"kind": "poisson", "rate": 20}}],
        "price": {"per_hour": 2},
    },
}


def checked(*arguments: str) -> None:
    assert PROMTOOL
    done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@promtool
def test_the_configuration_and_the_rules_are_taken(tmp_path: Path) -> None:
    stack = stack_of(TREE, "s")
    ports = {name: 9000 + i for i, name in enumerate(service_names(stack))}
    place = Place(folder=tmp_path, python="p", ports=ports, threads=1, programs=dict.fromkeys((*NEEDED, "host"), "x"))
    blueprint = composed(stack, place)
    assert blueprint.door == f"http://127.0.0.1:{ports['edge']}"
    files = blueprint.processes[-1].files
    for name in ("prometheus.json", "prometheus-rules.json"):
        (tmp_path / name).write_text(files[name], "utf-8")
    checked("check", "config", str(tmp_path / "prometheus.json"))
    scraped = [job["job_name"] for job in json.loads(files["prometheus.json"])["scrape_configs"]]
    assert scraped == ["a", "gateway", "bench", "host"]


def test_an_engine_that_is_called_edge_is_none() -> None:
    stack = stack_of({"name": "s", "engines": {"edge": TREE["engines"]["a"]}, "monitoring": {}}, "s")
    ports = {name: 9000 + i for i, name in enumerate(service_names(stack))}
    place = Place(
        folder=Path("/s"), python="p", ports=ports, threads=1, programs=dict.fromkeys((*NEEDED, *EXPORTERS), "x")
    )
    assert [process.name for process in composed(stack, place).processes] == ["edge", "bench", "host", "monitoring"]


def test_a_gateways_engines_have_the_names_of_their_services() -> None:
    stack = stack_of(TREE, "s")
    ports = {name: 9000 + i for i, name in enumerate(service_names(stack))}
    place = Place(folder=Path("/s"), python="p", ports=ports, threads=1, programs=dict.fromkeys(NEEDED, "x"))
    jobs = json.loads(composed(stack, place).processes[-1].files["prometheus.json"])["scrape_configs"]
    (gateway,) = (job for job in jobs if job["job_name"] == "gateway")
    places = [
        rule for rule in gateway["metric_relabel_configs"] if re.fullmatch(rule["regex"], f"127.0.0.1:{ports['a']}")
    ]
    assert [(rule["target_label"], rule["replacement"]) for rule in places] == [("engine", "a")]


@pytest.mark.parametrize(
    ("program", "asks"), [("/usr/bin/prometheus-node-exporter", False), ("/opt/node_exporter", True)]
)
def test_debians_exporter_is_told_to_leave_systemd_alone(program: str, *, asks: bool) -> None:
    """Others do by themselves, and may not know the option."""
    stack = stack_of(TREE, "s")
    ports = {name: 9000 + i for i, name in enumerate(service_names(stack))}
    programs = dict.fromkeys(NEEDED, "x") | {"host": program}
    blueprint = composed(stack, Place(folder=Path("/s"), python="p", ports=ports, threads=1, programs=programs))
    (host,) = (process for process in blueprint.processes if process.name == "host")
    assert ("--no-collector.systemd" not in host.argv) is asks


def scrape_configs() -> dict[str, dict[str, Any]]:
    stack = stack_of(TREE | {"agent": {}}, "s")
    ports = {name: 9000 + i for i, name in enumerate(service_names(stack))}
    place = Place(
        folder=Path("/s"),
        python="p",
        ports=ports,
        threads=1,
        programs=dict.fromkeys((*NEEDED, "host", "edge-counts"), "x"),
    )
    files = composed(stack, place).processes[-1].files
    return {job["job_name"]: job for job in json.loads(files["prometheus.json"])["scrape_configs"]}


@pytest.mark.parametrize(
    ("name", "taken_of"),
    [
        ("vllm:num_requests_running", {"a", "gateway", "agent", "bench", "host", "edge-counts"}),
        ("ALERTS", set()),
        ("ALERTS_FOR_STATE", set()),
        ("withstand:running", set()),
        ("up", set()),
        ("scrape_duration_seconds", set()),
        ("withstand_run_stage", {"bench"}),
        ("withstand_gateway_requests_total", {"gateway"}),
        ("withstand_agent_requests_total", {"agent"}),
        ("node_cpu_seconds_total", {"host"}),
        ("nginx_connections_active", {"edge-counts"}),
    ],
)
def test_a_name_is_taken_of_whose_it_is(name: str, taken_of: set[str]) -> None:
    """A target's own ``ALERTS`` stood on the board as an alert, its ``withstand_run_stage`` as a stage."""
    jobs = scrape_configs()
    [dropped] = [job["metric_relabel_configs"] for job in jobs.values()][:1]
    assert dropped[0]["action"] == "drop"
    taken = {
        job
        for job, told in jobs.items()
        if not any(re.fullmatch(rule["regex"], name) for rule in told["metric_relabel_configs"] if "action" in rule)
    }
    assert taken == taken_of


@pytest.mark.parametrize(("told", "gb"), [({}, 2.0), ({"room": {"memory_gb": 8, "cpus": [0]}}, 8.0)])
def test_prometheus_does_not_take_the_machine(told: dict[str, Any], gb: float) -> None:
    stack = stack_of(TREE | {"monitoring": told}, "s")
    ports = {name: 9000 + i for i, name in enumerate(service_names(stack))}
    place = Place(folder=Path("/s"), python="p", ports=ports, threads=1, programs=dict.fromkeys(NEEDED, "x"))
    assert composed(stack, place).processes[-1].upkeep.room.memory_gb == gb


def test_each_page_has_a_bound_of_each_kind() -> None:
    for job in scrape_configs().values():
        assert LIMITS.items() <= job.items()


def series(name: str, values: str) -> dict[str, str]:
    return {"series": name, "values": values}


@promtool
@pytest.mark.parametrize(
    ("given", "at", "alert"),
    [
        ([series('up{service="a"}', "1 0x20")], "2m", "ServiceDown"),
        ([series('vllm:num_requests_waiting{service="a"}', "0+60x20")], "4m", "QueueGrows"),
        ([series('vllm:gpu_cache_usage_perc{service="a"}', "0.99x20")], "3m", "KvCacheFull"),
        ([series('sglang:token_usage{service="a"}', "0.99x20")], "3m", "KvCacheFull"),
        ([series('vllm:num_preemptions_total{service="a"}', "0+60x40")], "3m", "Preempting"),
        ([series('withstand_gateway_requests_total{status="200"}', "0+60x40"),
          series('withstand_gateway_requests_total{status="503"}', "0+6x40")], "5m", "GatewayErrors"),
        ([series('withstand_gateway_loop_lag_seconds_bucket{le="0.01"}', "0x40"),
          series('withstand_gateway_loop_lag_seconds_bucket{le="1"}', "0+60x40"),
          series('withstand_gateway_loop_lag_seconds_bucket{le="+Inf"}', "0+60x40")], "4m", "GatewayLags"),
        ([series('vllm:nixl_num_kv_expired_reqs_total{service="a"}', "0+1x40")], "3m", "KvTransfersLost"),
        ([series('vllm:num_requests_running{service="a"}', "1x40"),
          series('vllm:generation_tokens_total{service="a"}', "5x40")], "4m", "EngineStalled"),
        ([series('vllm:num_requests_running{service="a"}', "1x40"),
          series('vllm:generation_tokens_total{service="a"}', "0+5x40")], "4m", None),
        ([series('vllm:num_requests_waiting{service="a"}', "5x40")], "4m", None),
    ],
)  # fmt: skip
def test_alerts_fire_for_what_they_are_named_after(
    given: list[dict[str, str]], at: str, alert: str | None, tmp_path: Path
) -> None:
    (tmp_path / "rules.json").write_text(json.dumps(rules(2.0)))
    labels = {"service": "a"} if alert and not alert.startswith("Gateway") else {}
    said = ALERTS[alert][2].replace("{{ $labels.service }}", "a") if alert else ""
    expected = [{"exp_labels": labels, "exp_annotations": {"summary": said}}] if alert else []
    asked = [
        {"eval_time": at, "alertname": name, "exp_alerts": expected if name == alert else []}
        for name in (ALERTS if alert is None else [alert])
    ]
    test = {
        "rule_files": ["rules.json"],
        "evaluation_interval": "15s",
        "tests": [{"interval": "15s", "input_series": given, "alert_rule_test": asked}],
    }
    (tmp_path / "test.json").write_text(json.dumps(test))
    checked("test", "rules", str(tmp_path / "test.json"))


@promtool
@pytest.mark.parametrize(
    "name", ["vllm:prefix_cache_{}_total", "vllm:gpu_prefix_cache_{}_total", "vllm:gpu_prefix_cache_{}"]
)
def test_old_and_new_names_are_one_value(name: str, tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text(json.dumps(rules(2.0)))
    given = [
        series(name.format("queries") + '{service="a",model_name="m"}', "0+100x40"),
        series(name.format("hits") + '{service="a",model_name="m"}', "0+50x40"),
        series('vllm:kv_cache_usage_perc{service="a",model_name="m"}', "0.5x40"),
        series('vllm:gpu_cache_usage_perc{service="a",model_name="m"}', "0.7x40"),
    ]
    expected = {"withstand:prefix_hit_share": 0.5, "withstand:kv_share": 0.5}
    asked = [
        {"expr": expr, "eval_time": "5m", "exp_samples": [{"labels": f'{expr}{{service="a"}}', "value": value}]}
        for expr, value in expected.items()
    ]
    test = {
        "rule_files": ["rules.json"],
        "evaluation_interval": "15s",
        "tests": [{"interval": "15s", "input_series": given, "promql_expr_test": asked}],
    }
    (tmp_path / "test.json").write_text(json.dumps(test))
    checked("test", "rules", str(tmp_path / "test.json"))


def test_panels_do_not_overlap_and_ask_for_what_is_recorded() -> None:
    taken = set()
    for panel in dashboard(2.0)["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"]) for j in range(at["h"])}
        assert not taken & cells
        taken |= cells
    asked = {expr for panel in PANELS for expr in panel.queries.values() if expr.startswith("withstand:")}
    assert asked <= set(RULES)


def test_answers_by_status_are_those_of_models() -> None:
    """This program has a stack count its prompts: on the panel these were answers too."""
    [panel] = [panel for panel in PANELS if panel.title == "Answers by status"]
    [expression] = panel.queries.values()
    found = re.search(r'route!~"(.+?)"', expression)
    assert found
    left_out = [path for path in ROUTES if re.fullmatch(found[1], path)]
    assert left_out == ["/v1/messages/count_tokens", "/tokenize", "/detokenize"]


@pytest.mark.parametrize("scrape_s", [0.2, 2.0, 7.5, 60.0])
def test_every_window_holds_several_scrapes(scrape_s: float) -> None:
    """A rate of one scrape is no rate: with 30 s and a scrape a minute each of them was empty."""
    text = json.dumps([rules(scrape_s), dashboard(scrape_s)])
    windows = re.findall(r"\[(\d+)(s|m)\]", text)
    assert len(windows) == text.count("[") - len(re.findall(r"\[(?![\d])", text))
    assert all(int(span) * {"s": 1, "m": 60}[unit] >= 4 * scrape_s for span, unit in windows)


def test_what_is_asked_of_the_agent_is_what_it_tells() -> None:
    asked = {
        name for panel in PANELS for expr in panel.queries.values() for name in re.findall(r"withstand_agent_\w+", expr)
    }
    told = {line.split()[2] for line in Counts([]).exposition().splitlines() if line.startswith("# TYPE")}
    assert asked
    assert {re.sub(r"_(sum|count)$", "", name) for name in asked} <= told


@pytest.mark.skipif(any(found_program(name) is None for name in NEEDED), reason="Debian's monitoring is not installed")
def test_every_panel_has_data_in_a_stack_that_is_measured(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="the gateway's extra is not installed")
    file = tmp_path / "watched.json"
    file.write_text(json.dumps(TREE))
    environment = os.environ | {"WITHSTAND_STATE": str(tmp_path / "state")}

    def withstand(*arguments: str) -> None:
        command = [sys.executable, "-m", "withstand", *arguments]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode in {0, 3}, done.stdout + done.stderr  # 3: a busy machine bounds the client

    withstand("up", str(file))
    try:
        blueprint = json.loads((tmp_path / "state" / "stacks" / "watched" / "blueprint.json").read_text())
        url = next(f"http://127.0.0.1:{p['port']}" for p in blueprint["processes"] if p["name"] == "monitoring")
        withstand("run", str(file), "--quiet", "--output-dir", str(tmp_path / "run"))
        wanted = [expr for panel in PANELS for expr in panel.queries.values() if "_agent_" not in expr]
        wanted += [each["expr"] for each in dashboard(0.5)["annotations"]["list"]]
        give_up_s = time.monotonic() + PATIENCE_S
        while empty := [expr for expr in wanted if not values_of(url, expr)]:
            assert time.monotonic() < give_up_s, empty
            time.sleep(0.2)
        board = (tmp_path / "run" / "board.html").read_text()
        assert '"stages":[["stage-1",' in board
        assert all(f"<figcaption>{escape(title)} " in board for title in ("KV cache in use", "Cores busy"))
        while values_of(url, "min(up)")[-1] != 1:
            assert time.monotonic() < give_up_s
            time.sleep(0.2)
    finally:
        withstand("down", "watched")


def values_of(url: str, expr: str) -> list[float]:
    """All that it came to within the last minutes."""
    now = time.time()
    asked = urllib.parse.urlencode({"query": expr, "start": now - 300, "end": now, "step": 1})
    with urllib.request.urlopen(f"{url}/api/v1/query_range?{asked}", timeout=30) as answer:
        found = json.load(answer)["data"]["result"]
    return [float(value) for series in found for _, value in series["values"] if value != "NaN"]
