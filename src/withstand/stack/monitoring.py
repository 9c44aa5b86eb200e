"""Monitoring as processes: Prometheus, what it scrapes besides the services, rules, and what Grafana is to load. Pure.

All files are JSON, which Prometheus and Grafana's provisioning read as YAML.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from withstand.spec.stack import Monitoring
from withstand.stack.blueprint import Place, Process, Upkeep, upkeep_of
from withstand.stack.edge import EDGE, EDGE_STATUS, NGINX
from withstand.stack.ports import HOST
from withstand.stack.queries import ALERTS, PANELS, RULES, STAGES, windowed

MONITORING, BENCH, MACHINE, EDGE_COUNTS = "monitoring", "bench", "host", "edge-counts"
PROMETHEUS = "prometheus"
_GATEWAY = "gateway"
LIMITS: Mapping[str, str | int] = {
    "body_size_limit": "4MB",
    "sample_limit": 10_000,
    "label_limit": 100,
    "label_name_length_limit": 200,
    "label_value_length_limit": 4_000,
}
"""Of one page: what is more is its target's failure, and would be that of all. vLLM's has 600 samples."""
_MEMORY_GB = 2.0
"""Of Prometheus, where nobody says another: it is not to take the machine away from those that are measured."""
_COMPUTED = ("withstand:.*", "ALERTS", "ALERTS_FOR_STATE", "up", "scrape_.*")
"""What Prometheus makes itself."""
_DEBIANS = "prometheus-node-exporter"
"""On Linux only, and unlike others it asks systemd unless told not to: an error at each scrape where none runs."""
EXPORTERS: Mapping[str, tuple[str, ...]] = {
    MACHINE: (_DEBIANS, "node_exporter"),
    EDGE_COUNTS: ("prometheus-nginx-exporter", "nginx-prometheus-exporter"),
}
"""Taken where they are installed."""
_WHOSE = {
    BENCH: "withstand_run_.*",
    _GATEWAY: "withstand_gateway_.*",
    "agent": "withstand_agent_.*",
    MACHINE: "node_.*",
    EDGE_COUNTS: "nginx_.*",
}
"""Names that are believed of one service, or kind of them, alone."""
_CONFIG, _RULES = "prometheus.json", "prometheus-rules.json"
_SOURCE = {"type": "prometheus", "uid": "withstand"}


def monitoring(told: Monitoring, place: Place, services: Iterable[Process], stack: str) -> list[Process]:
    """Prometheus, and the exporters; ``services`` are those of the stack so far."""
    services = list(services)
    exporters = [_bench(place), *([_machine(place)] if MACHINE in place.programs else [])]
    if EDGE_COUNTS in place.programs and any(process.kind == NGINX for process in services):
        exporters.append(_edge_counts(place))
    port = place.ports[MONITORING]
    url = f"http://{HOST}:{port}"
    scraped = [process for process in (*services, *exporters) if process.metrics or process in exporters]
    prometheus = Process(
        name=MONITORING,
        kind=PROMETHEUS,
        argv=(
            place.programs[PROMETHEUS],
            f"--config.file={place.folder / _CONFIG}",
            f"--storage.tsdb.path={place.folder / 'prometheus'}",
            f"--storage.tsdb.retention.time={told.keep_days}d",
            f"--web.listen-address={HOST}:{port}",
            "--log.level=warn",
        ),
        env=told.env,
        port=port,
        health="/-/ready",
        files={
            _CONFIG: _json(_config(told, scraped, stack)),
            _RULES: _json(rules(told.scrape_s)),
            "grafana/datasources/withstand.yaml": _json(_datasources(url)),
            "grafana/dashboards/withstand.yaml": _json(_providers(str(place.folder / "grafana" / "boards"))),
            "grafana/boards/withstand.json": _json(dashboard(told.scrape_s)),
        },
        upkeep=_bounded(upkeep_of(told)),
        reason=r'err="(.+)"|(fatal error: .+)',
    )
    return [*exporters, prometheus]


def _bounded(upkeep: Upkeep) -> Upkeep:
    """Series that a page has once, and the next page other ones, stay in memory though the page is refused."""
    if upkeep.room.memory_gb is not None:
        return upkeep
    return replace(upkeep, room=replace(upkeep.room, memory_gb=_MEMORY_GB))


def _json(tree: object) -> str:
    return json.dumps(tree, indent=1) + "\n"


def _bench(place: Place) -> Process:
    port = place.ports[BENCH]
    argv = (place.python, "-P", "-m", "withstand.app.exposed", str(port), str(place.folder / "run"))
    return Process(name=BENCH, kind="exporter", argv=argv, port=port)


def _machine(place: Place) -> Process:
    port = place.ports[MACHINE]
    program = place.programs[MACHINE]
    quiet = ("--log.level=error", *(("--no-collector.systemd",) if program.endswith(_DEBIANS) else ()))
    argv = (program, f"--web.listen-address={HOST}:{port}", "--web.disable-exporter-metrics")
    return Process(name=MACHINE, kind="exporter", argv=(*argv, *quiet), port=port, health="/")


def _edge_counts(place: Place) -> Process:
    port, status = place.ports[EDGE_COUNTS], place.ports[EDGE_STATUS]
    told = (f"-web.listen-address={HOST}:{port}", f"-nginx.scrape-uri=http://{HOST}:{status}/stub_status")
    argv = (place.programs[EDGE_COUNTS], *told)
    return Process(name=EDGE_COUNTS, kind="exporter", argv=argv, port=port, health="/metrics", needs=(EDGE,))


def _config(told: Monitoring, scraped: list[Process], stack: str) -> dict[str, Any]:
    every = f"{told.scrape_s * 1000:.0f}ms"
    return {
        "global": {
            "scrape_interval": every,
            "scrape_timeout": every,
            "evaluation_interval": every,
            "external_labels": {"stack": stack},
        },
        "rule_files": [_RULES],
        "scrape_configs": [
            {
                "job_name": process.name,
                **LIMITS,
                "metric_relabel_configs": [
                    {"source_labels": ["__name__"], "regex": "|".join(_not_its(process)), "action": "drop"},
                    *(_named(scraped) if process.kind == _GATEWAY else ()),
                ],
                "metrics_path": urlsplit(process.metrics_url or "").path or "/metrics",
                "static_configs": [
                    {
                        "targets": [urlsplit(process.metrics_url or process.base_url).netloc],
                        "labels": {"service": process.name, "kind": process.kind},
                    }
                ],
            }
            for process in scraped
        ],
    }


def _not_its(process: Process) -> list[str]:
    """Names that a service has no business to tell: with them it could put alerts and stages on the board."""
    others = (names for owner, names in _WHOSE.items() if owner not in {process.name, process.kind})
    return [*_COMPUTED, *others]


def _named(scraped: list[Process]) -> list[dict[str, Any]]:
    """A gateway knows its engines by their addresses, and people by the names of their services."""
    places = {process.name: urlsplit(process.base_url).netloc for process in scraped}
    return [
        {"source_labels": ["engine"], "regex": re.escape(place), "target_label": "engine", "replacement": name}
        for name, place in places.items()
    ]


def rules(scrape_s: float) -> dict[str, Any]:
    """What is computed all the time, and what calls for somebody."""
    recorded = [{"record": name, "expr": windowed(expr, scrape_s)} for name, expr in RULES.items()]
    alerts = [
        {"alert": name, "expr": windowed(expr, scrape_s), "for": held, "annotations": {"summary": said}}
        for name, (expr, held, said) in ALERTS.items()
    ]
    return {"groups": [{"name": "withstand", "rules": recorded}, {"name": "alerts", "rules": alerts}]}


def _datasources(url: str) -> dict[str, Any]:
    source = {"name": "withstand", "uid": _SOURCE["uid"], "type": "prometheus", "access": "proxy", "url": url}
    return {"apiVersion": 1, "datasources": [source]}


def _providers(folder: str) -> dict[str, Any]:
    return {"apiVersion": 1, "providers": [{"name": "withstand", "type": "file", "options": {"path": folder}}]}


def dashboard(scrape_s: float) -> dict[str, Any]:
    """Grafana's: a row for each layer, two panels side by side, the benchmark's stages as regions."""
    panels: list[dict[str, Any]] = []
    y, row, column = 0, "", 0
    for panel in PANELS:
        if panel.row != row:
            y, row, column = y + 8 * (column > 0), panel.row, 0
            panels.append({"type": "row", "title": row, "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
            y += 1
        targets = [
            {"refId": chr(65 + i), "expr": windowed(expr, scrape_s), "legendFormat": legend, "datasource": _SOURCE}
            for i, (legend, expr) in enumerate(panel.queries.items())
        ]
        panels.append(
            {
                "type": "timeseries",
                "title": panel.title,
                "datasource": _SOURCE,
                "targets": targets,
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "gridPos": {"x": 12 * column, "y": y, "w": 12, "h": 8},
            }
        )
        y, column = (y + 8, 0) if column else (y, 1)
    stages = {
        "name": "Stages",
        "enable": True,
        "datasource": _SOURCE,
        "expr": STAGES,
        "titleFormat": "{{stage}}",
        "iconColor": "blue",
        "step": "1s",
    }
    return {
        "uid": "withstand",
        "title": "withstand: the stack under load",
        "schemaVersion": 39,
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "annotations": {"list": [stages]},
        "panels": [{"id": i + 1, **panel} for i, panel in enumerate(panels)],
    }
