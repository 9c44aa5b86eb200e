"""The gateways, and the command that starts each: one worker process, one core. It knows nothing of what is measured.

direct              no gateway: the engine itself
withstand           with keys and access log
withstand-cold      the same, without ``cache_warming``: only where it is named
withstand-busy      the same, with ``busy_polling``: only where it is named, since it takes all of its core
vllm-router, sglang-router, production-stack, litellm    from ``python -m benchmarks.gateway.install``
nginx               the system's, ``proxy_buffering off``
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.load.instrument import AbsentError
from benchmarks.load.meter import Meter
from benchmarks.peers.home import is_installed, program

from withstand.stack.ports import free_port

DIRECT: Final = "direct"
OURS: Final = "withstand"
COLD: Final = "withstand-cold"
BUSY: Final = "withstand-busy"
ON_REQUEST: Final = frozenset((COLD, BUSY))
"""Ours otherwise: nobody wants them but who names them."""
MODEL: Final = "mock"
KEY: Final = "sk-local-test-key"
_BEARER: Final = f"Authorization: Bearer {KEY}"
_START_S = 90.0
_LOOK_S = 0.005
_END_S = 5.0


class Wanted(NamedTuple):
    """What a gateway is to do."""

    engines: Sequence[str]
    """Their URLs."""
    folder: Path
    port: int
    timeout_s: int = 600
    """Until the first byte, where the gateway has such an option."""
    spread: bool = False
    """By the engines' load, as well as it can; else the simplest policy."""
    ours: Mapping[str, str] = {}
    """Sections of our own configuration, as TOML: ``{"": "workers = 2", "timeouts": …}``."""


class Start(NamedTuple):
    """How it is started, and what a request must have."""

    command: list[str]
    header: str | None = None
    env: Mapping[str, str] = {}


def _withstand(wanted: Wanted) -> Start:
    ours = dict(wanted.ours)
    sections = [
        ours.pop("", ""),
        f'listen = "127.0.0.1:{wanted.port}"',
        f"[models.{MODEL}]",
        ours.pop("model", ""),
        f'policy = "{"least_inflight" if wanted.spread else "round_robin"}"',
        *(f'[[models.{MODEL}.engines]]\nurl = "{url}"\n{ours.get("engine", "")}' for url in wanted.engines),
        f"[timeouts]\nfirst_byte_s = {wanted.timeout_s}\n{ours.pop('timeouts', '')}",
        f'[keys.bench]\nadmin = true\nsha256 = "{hashlib.sha256(KEY.encode()).hexdigest()}"',
        f'[log]\npath = "{wanted.folder / "access.jsonl"}"',
    ]
    config = wanted.folder / "withstand.toml"
    config.write_text("\n".join(sections), "utf-8")
    return Start([sys.executable, "-m", "withstand", "gateway", str(config)], _BEARER)


def _withstand_with(line: str) -> Callable[[Wanted], Start]:
    def start(wanted: Wanted) -> Start:
        told = "\n".join((line, wanted.ours.get("", "")))
        return _withstand(wanted._replace(ours={**wanted.ours, "": told}))

    return start


def _rust(name: str, words: Sequence[str], verb: Sequence[str], wanted: Wanted) -> Start:
    command = [program(name, words[0]), *verb, "--host", "127.0.0.1", "--port", str(wanted.port)]
    command += ["--worker-urls", *wanted.engines, "--policy", "power_of_two" if wanted.spread else "round_robin"]
    command += ["--prometheus-host", "127.0.0.1", "--prometheus-port", str(free_port())]
    return Start([*command, "--log-level", words[1], "--request-timeout-secs", str(wanted.timeout_s)])


def _vllm_router(wanted: Wanted) -> Start:
    return _rust("vllm-router", ("vllm-router", "warning"), (), wanted)


def _sglang_router(wanted: Wanted) -> Start:
    return _rust("sglang-router", ("smg", "warn"), ("launch",), wanted)


def _production_stack(wanted: Wanted) -> Start:
    each = len(wanted.engines)
    command = [program("production-stack", "vllm-router"), "--host", "127.0.0.1", "--port", str(wanted.port)]
    command += ["--service-discovery", "static", "--static-backends", ",".join(wanted.engines)]
    command += ["--static-models", ",".join([MODEL] * each), "--static-model-types", ",".join(["chat"] * each)]
    return Start([*command, "--routing-logic", "roundrobin", "--log-level", "warning"])


def _litellm(wanted: Wanted) -> Start:
    told = {
        "model_list": [
            {
                "model_name": MODEL,
                "litellm_params": {"model": f"openai/{MODEL}", "api_base": f"{url}/v1", "api_key": "none"},
            }
            for url in wanted.engines
        ],
        "litellm_settings": {"telemetry": False, "request_timeout": wanted.timeout_s, "num_retries": 0},
        "router_settings": {"routing_strategy": "least-busy" if wanted.spread else "simple-shuffle"},
    }
    config = wanted.folder / "litellm.yaml"
    config.write_text(json.dumps(told), "utf-8")  # JSON is YAML
    command = [program("litellm", "litellm"), "--config", str(config), "--host", "127.0.0.1"]
    env = {"LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return Start(
        [*command, "--port", str(wanted.port), "--num_workers", "1", "--telemetry", "False"],
        _BEARER,
        {**env, "LITELLM_MASTER_KEY": KEY, "NO_DOCS": "True"},
    )


_NGINX = """
worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error.log warn;
events {{ worker_connections 8192; use epoll; }}
http {{
  access_log off; keepalive_requests 1000000; tcp_nodelay on;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream engines {{ {policy} {servers} keepalive 2000; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://engines; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_request_buffering off; proxy_read_timeout {timeout_s}s;
    }}
  }}
}}
"""


def _nginx(wanted: Wanted) -> Start:
    servers = " ".join(f"server {url.removeprefix('http://')};" for url in wanted.engines)
    policy = "least_conn;" if wanted.spread else ""
    text = _NGINX.format(
        folder=wanted.folder, policy=policy, servers=servers, port=wanted.port, timeout_s=wanted.timeout_s
    )
    config = wanted.folder / "nginx.conf"
    config.write_text(text, "utf-8")
    return Start([_nginx_program() or "nginx", "-e", str(wanted.folder / "error.log"), "-c", str(config)])


def _nginx_program() -> str | None:
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


GATEWAYS: Final[Mapping[str, Callable[[Wanted], Start]]] = {
    OURS: _withstand,
    COLD: _withstand_with("cache_warming = false"),
    BUSY: _withstand_with("busy_polling = true"),
    "vllm-router": _vllm_router,
    "nginx": _nginx,
    "sglang-router": _sglang_router,
    "production-stack": _production_stack,
    "litellm": _litellm,
}


def present(name: str) -> bool:
    """Whether it can be started here."""
    if name in {DIRECT, OURS, *ON_REQUEST}:
        return True
    return _nginx_program() is not None if name == "nginx" else is_installed(name)


class Running(NamedTuple):
    """A gateway that answers."""

    name: str
    port: int
    header: str | None
    pid: int | None
    """Of its first process; None = there is no gateway."""
    start_s: float
    """From its command to its first answer of an engine's."""

    def pids(self, core: int) -> list[int]:
        """All its processes."""
        return list(self.family(core))

    def family(self, core: int) -> dict[int, int]:
        """All its processes, with their resident bytes."""
        if self.pid is None:
            return {}
        meter = Meter(self.pid, core)
        meter.look()
        return {pid: process.rss_bytes for pid, process in meter.readings[-1].processes.items()}


@contextmanager
def running(name: str, wanted: Wanted, cores: Sequence[int]) -> Iterator[Running]:
    """The gateway, which does not outlive the block. ``direct`` is the first engine."""
    if name == DIRECT:
        yield Running(name, int(wanted.engines[0].rpartition(":")[2]), None, None, 0.0)
        return
    start = GATEWAYS[name](wanted)
    log = wanted.folder / f"{name}.log"
    with log.open("wb") as out:
        began_s = time.monotonic()
        command = ["taskset", "--cpu-list", ",".join(map(str, cores)), *start.command]
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env={**os.environ, **start.env}, start_new_session=True
        )
        try:
            _await_answer(process, wanted.port, start.header, log)
            yield Running(name, wanted.port, start.header, process.pid, time.monotonic() - began_s)
        finally:
            _end(process)


def _await_answer(process: "subprocess.Popen[bytes]", port: int, header: str | None, log: Path) -> None:
    end_s = time.monotonic() + _START_S
    while not _answers(port, header):
        if process.poll() is not None or time.monotonic() > end_s:
            raise AbsentError(f"{log.stem} did not start: {log.read_text('utf-8', 'replace')[-800:]}")
        time.sleep(_LOOK_S)


def _answers(port: int, header: str | None) -> bool:
    body = json.dumps({"model": MODEL, "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}).encode()
    headers = {"content-type": "application/json", **dict([header.split(": ", 1)] if header else [])}
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body, headers)
    try:
        with urllib.request.urlopen(asked, timeout=_END_S) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _end(process: "subprocess.Popen[bytes]") -> None:
    """With all that it started: the group is its own."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_S / 5)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(_END_S)
