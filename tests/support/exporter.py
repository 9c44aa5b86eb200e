"""A small HTTP server that plays an engine's ``/metrics``, well or badly, and remembers who asked for what."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

Answer = Callable[[int], tuple[int, str]]
"""From the number of the question (from 0) to a status and a text."""


class Exporter:
    """On a free port of the loopback within the context. ``hangs_s`` is how long it is silent first."""

    def __init__(self, answer: Answer, hangs_s: float = 0.0) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                exporter.asked.append((self.path, dict(self.headers)))
                time.sleep(hangs_s)
                status, text = answer(len(exporter.asked) - 1)
                body = text.encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/metrics"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


def vllm(**values: float) -> str:
    """As vLLM writes it, with the label that all have: ``num_requests_running=8``."""
    lines = [f'vllm:{name}{{engine="0",model_name="m"}} {value}' for name, value in values.items()]
    return "# HELP vllm:x y\n# TYPE vllm:x gauge\n" + "\n".join(lines) + "\n"


def dcgm(watts: Mapping[int, float], *, idle: Collection[int] = (), counters: bool = True) -> Answer:
    """As DCGM's exporter writes it: a node's GPUs by number, of steady power; the idle ones hold no memory."""
    began = time.monotonic()

    def text(_: int) -> tuple[int, str]:
        lines = []
        for gpu, power in watts.items():
            told = {
                "POWER_USAGE": power,
                "GPU_UTIL": 0 if gpu in idle else 90,
                "FB_USED": 4 if gpu in idle else 60_000,
                "FB_FREE": 20_000,
            }
            if counters:
                told["TOTAL_ENERGY_CONSUMPTION"] = 1e9 + 1000 * power * (time.monotonic() - began)
            labels = f'gpu="{gpu}",UUID="GPU-{gpu}",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a"'
            lines += [f"DCGM_FI_DEV_{name}{{{labels}}} {value}" for name, value in told.items()]
        return 200, "\n".join(lines) + "\n"

    return text
