"""nginx's configuration for streams of tokens, as text. Pure.

What matters: nothing is held back (no buffering, HTTP/1.1 and kept connections behind), nothing is asked twice, a
client that leaves is gone at once behind too, and time limits are those of long answers. nginx closes an idle
connection before the gateway does (``IDLE_S``), so that no request is sent into a closing one.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

from withstand.spec.mistake import wrong
from withstand.spec.stack import Edge
from withstand.stack.ports import HOST

IDLE_S = 60
"""Below the 75 s of our gateway."""
_CONNECT_S = 5
_HOST_PORT = re.compile(r"http://(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\])(:(?P<port>\d{1,5}))?/?", re.ASCII)
AGENT_PATH = "/agent"
"""Below it the agent answers, where it and a gateway stand behind one edge."""
_PASSED = ("/v1/", "/tokenize", "/detokenize", "= /health", "= /ready")
"""Not ``/metrics`` and ``/admin``: they are not for those outside."""
_LOGGED = {
    "time": "$time_iso8601",
    "request_id": "$edge_request_id",
    "traceparent": "$http_traceparent",
    "client": "$remote_addr",
    "method": "$request_method",
    "path": "$uri",
    "upstream": "$upstream_addr",
}
"""Texts, escaped as JSON wants it. Of upstreams a list where several were tried."""
_COUNTED = {
    "status": "$status",
    "bytes_in": "$request_length",
    "bytes_out": "$bytes_sent",
    "request_s": "$request_time",
    "upstream_status": "$upstream_status",
    "upstream_connect_s": "$upstream_connect_time",
    "upstream_header_s": "$upstream_header_time",
    "upstream_s": "$upstream_response_time",
}
"""Numbers; null where nginx has none (it writes ``-``), an array of them where several upstreams were tried."""
_ERRORS = {
    404: ("invalid_request_error", "The edge does not pass this path; it passes {passed}."),
    413: ("invalid_request_error", "The request is larger than the edge lets pass; edge.max_body_mb is its limit."),
    502: ("server_error", "Nothing answers behind the edge."),
    504: ("server_error", "What is behind the edge does not answer in time."),
}


class Behind(NamedTuple):
    """URLs that requests are passed to: those below ``/v1/``, and those below ``/agent/v1/``."""

    gateways: tuple[str, ...]
    agents: tuple[str, ...] = ()


def nginx_conf(told: Edge, behind: Behind, ports: tuple[int, int], *, root: bool, cores: int) -> str:
    """The whole file. Paths in it are below nginx's prefix (``-p``), the stack's folder.

    Args:
        told: What is wanted.
        behind: Whom requests are passed to.
        ports: Of the door, and of nginx's own health and counts.
        root: Whether nginx is started by root: then its workers are root's too, as all of the stack is.
        cores: Of this machine.

    Raises:
        SpecError: an upstream is no plain HTTP address.
    """
    door, status = ports
    lines = [
        *(["user root root;"] if root else []),
        "daemon off;",
        f"worker_processes {told.workers or min(cores, 4)};",
        "worker_rlimit_nofile 16384;",
        "pid edge.pid;",
        "error_log stderr error;",
        *_block("events", ["worker_connections 8192;"]),
        *_block(
            "http",
            [
                *_paths(),
                *(line for name, variable in _COUNTED.items() for line in _number(variable, name)),
                f"log_format edge escape=json '{_log_line()}';",
                "access_log logs/edge-access.log edge;",
                *_milliseconds("$request_time", "$edge_whole_ms"),
                *_milliseconds("$upstream_header_time", "$edge_behind_ms"),
                *_block("map $http_x_request_id $edge_request_id", ["default $http_x_request_id;", "'' $request_id;"]),
                *_block(f"map {_variable(told)} $edge_affinity", [f"default {_variable(told)};", "'' $remote_addr;"]),
                *_upstream("behind", told, behind.gateways),
                *(_upstream("agent", told, behind.agents) if behind.agents else []),
                *_block("server", _server(told, door, behind)),
                *_block("server", _status(status)),
            ],
        ),
    ]
    return "\n".join(lines) + "\n"


def _log_line() -> str:
    told = [f"{json.dumps(name)}: {json.dumps(variable)}" for name, variable in _LOGGED.items()]
    told += [f"{json.dumps(name)}: $edge_log_{name}" for name in _COUNTED]
    return f"{{{', '.join(told)}}}"


def _number(variable: str, name: str) -> list[str]:
    """JSON knows no number that begins with another's zero."""
    one = r"(0|[1-9][0-9]*)([.][0-9]+)?"
    numbers = [f'"~^{one}$" {variable};', f'"~^{one}(, {one})+$" "[{variable}]";']
    return _block(f"map {variable} $edge_log_{name}", ["default null;", *numbers])


def _milliseconds(seconds: str, name: str) -> list[str]:
    """By text: ``0.123`` without its point is in ms, and a list, where several were tried, is nothing."""
    return _block(f"map {seconds} {name}", ['"~^([0-9]+)[.]([0-9]{3})$" $1$2;'])


def _upstream(name: str, told: Edge, urls: tuple[str, ...]) -> list[str]:
    balance = {"least_conn": ["least_conn;"], "hash": ["hash $edge_affinity consistent;"], "round_robin": []}
    return _block(
        f"upstream {name}",
        [
            f"zone {name} 256k;  # one view of all workers",
            *balance[told.balance],
            *(f"server {_host_port(url)} max_fails=1 fail_timeout=2s;" for url in urls),
            f"keepalive {told.keepalive};",
            "keepalive_requests 1000000;",
            f"keepalive_timeout {IDLE_S}s;",
        ],
    )


def _variable(told: Edge) -> str:
    return "$http_" + told.hash_header.lower().replace("-", "_")


def _host_port(url: str) -> str:
    at = _HOST_PORT.fullmatch(url)
    if at is None:
        raise wrong("edge.gateways", f"the edge passes to http://HOST:PORT alone, not to {url!r}")
    return f"{at['host']}:{at['port'] or 80}"


def _paths() -> list[str]:
    """Below the prefix, whatever the distribution has built in."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    return [f"{kind}_temp_path edge-{kind};" for kind in kinds]


def _server(told: Edge, port: int, behind: Behind) -> list[str]:
    read_s = f"{told.read_timeout_s:g}s"
    listen = f"listen {HOST}:{port} backlog=4096"
    return [
        *([f"{listen} ssl;", *_tls(told)] if told.tls else [f"{listen};"]),
        "server_tokens off;",
        "gzip off;  # it would hold events back",
        f"client_max_body_size {told.max_body_mb * 1e6:.0f};",
        "client_body_buffer_size 1m;",
        "client_header_timeout 15s;",
        "keepalive_timeout 75s;",
        "keepalive_requests 100000;",
        "send_timeout 60s;",
        "proxy_http_version 1.1;",
        'proxy_set_header Connection "";',
        "proxy_set_header Host $http_host;",
        "proxy_set_header X-Request-ID $edge_request_id;",
        "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
        "proxy_set_header X-Forwarded-Proto $scheme;",
        "proxy_buffering off;",
        "proxy_cache off;",
        "proxy_max_temp_file_size 0;",
        "proxy_buffer_size 32k;",
        "proxy_buffers 8 32k;",
        "proxy_ignore_client_abort off;",
        f"proxy_connect_timeout {_CONNECT_S}s;",
        f"proxy_read_timeout {read_s};",
        f"proxy_send_timeout {read_s};",
        "proxy_socket_keepalive on;",
        _retries(several=len(behind.gateways) > 1),
        "add_header X-Accel-Buffering no always;  # for a proxy in front: nginx eats the one from behind",
        'add_header Server-Timing "edge-whole;dur=$edge_whole_ms, edge-behind;dur=$edge_behind_ms";',
        *(line for status in _ERRORS for line in _error(status, _passed(behind))),
        *(line for path in _PASSED for line in _block(f"location {path}", ["proxy_pass http://behind;"])),
        *(_block(f"location {AGENT_PATH}/v1/", ["proxy_pass http://agent/v1/;"]) if behind.agents else []),
        *_block("location /", ["return 404;"]),
    ]


def _retries(*, several: bool) -> str:
    """A POST that was sent is never sent again (that would be ``non_idempotent``), but one that nobody took may be."""
    return "proxy_next_upstream error;" if several else "proxy_next_upstream off;"


def _tls(told: Edge) -> list[str]:
    assert told.tls
    for name, path in (("certificate", told.tls.certificate), ("key", told.tls.key)):
        if "$" in path:
            raise wrong(f"edge.tls.{name}", "nginx takes $ for a variable's name; put the file where its path has none")
    return [
        f"ssl_certificate {_quoted(told.tls.certificate)};",
        f"ssl_certificate_key {_quoted(told.tls.key)};",
        "ssl_protocols TLSv1.2 TLSv1.3;",
        "ssl_session_cache shared:edge:4m;",
        "ssl_buffer_size 4k;",
    ]


def _quoted(path: str) -> str:
    return json.dumps(str(Path(path).absolute()), ensure_ascii=False)


def _passed(behind: Behind) -> str:
    """For people."""
    below, *paths, last = (path.removeprefix("= ") for path in _PASSED)
    agents = f" and {AGENT_PATH}/v1/" if behind.agents else ""
    return f"what is below {below}{agents}, {', '.join(paths)} and {last}"


def _error(status: int, passed: str) -> list[str]:
    """Nginx's own errors, in the form that OpenAI's clients understand."""
    kind, message = _ERRORS[status]
    error = {"message": message.format(passed=passed), "type": kind, "param": None, "code": None}
    body = json.dumps({"error": error})
    return [
        f"error_page {status} @e{status};",
        *_block(f"location @e{status}", ["default_type application/json;", f"return {status} '{body}';"]),
    ]


def _status(port: int) -> list[str]:
    return [
        f"listen {HOST}:{port};",
        "access_log off;",
        *_block("location = /health", ["return 200;"]),
        *_block("location = /stub_status", ["stub_status;"]),
    ]


def _block(head: str, lines: list[str]) -> list[str]:
    return [f"{head} {{", *(f"    {line}" for line in lines), "}"]
