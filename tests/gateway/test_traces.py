"""Spans as a collector gets them, over OTLP/HTTP from a real gateway."""

import http.server
import threading
from collections.abc import Callable

import pytest

from engines import Behave, Engine
from gateways import Gateway, body, model
from money import spends

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra gateway-otel is not installed")


class Collector(http.server.BaseHTTPRequestHandler):
    """Keeps the spans of all batches."""

    spans: list[object]

    def do_POST(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415
            ExportTraceServiceRequest,
        )

        raw = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            import gzip  # noqa: PLC0415

            raw = gzip.decompress(raw)
        told = ExportTraceServiceRequest.FromString(raw)
        type(self).spans += [span for r in told.resource_spans for s in r.scope_spans for span in s.spans]
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_request_is_a_span_below_its_clients(
    engine: Callable[[Behave], Engine], gateway: Callable[[str], Gateway]
) -> None:
    one = engine(spends(10, 5, 4))
    Collector.spans = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        gw = gateway(f'[telemetry]\notlp = "http://127.0.0.1:{server.server_address[1]}"\n' + model(one.url))
        gw.ask(body(), more=f"traceparent: 00-{'ab' * 16}-{'cd' * 8}-01\r\n")
        gw.ask(body("other"), more="traceparent: nonsense\r\n")
        gw.terminate()
        assert gw.process.wait(10) == 0  # what is left is sent at the end
        server.shutdown()
    first, second = Collector.spans
    told = {each.key: each.value for each in first.attributes}  # type: ignore[attr-defined]
    assert (first.name, first.trace_id, first.parent_span_id) == ("chat m", b"\xab" * 16, b"\xcd" * 8)  # type: ignore[attr-defined]
    assert told["gen_ai.request.model"].string_value == "m"
    assert told["server.port"].int_value == one.port
    usage = [told[f"gen_ai.usage.{name}"].int_value for name in ("input_tokens", "output_tokens")]
    assert usage == [10, 5]
    assert first.end_time_unix_nano > first.start_time_unix_nano  # type: ignore[attr-defined]
    assert (second.name, second.parent_span_id, second.status.code) == ("chat", b"", 2)  # type: ignore[attr-defined]
    assert {each.key: each.value.string_value for each in second.attributes}["error.type"] == "refused"  # type: ignore[attr-defined]
