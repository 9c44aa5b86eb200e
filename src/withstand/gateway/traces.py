"""A span a request for OpenTelemetry, by its conventions for generative AI; made and sent in a thread, afterwards.

The loop only puts what it knows into a queue. A collector that is slow or away costs spans, never requests.
"""

import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from withstand import __version__, clock
from withstand.errors import UsageError, extra
from withstand.gateway.counts import Ending, Outcome

if TYPE_CHECKING:
    from withstand.gateway.terms import TelemetryConfig

_WAITING_MAX = 10_000
_ANSWERS = frozenset((Outcome.ENGINE_REFUSED, Outcome.ENGINE_ERROR))
_OPERATIONS = {
    "/v1/chat/completions": "chat",
    "/v1/messages": "chat",
    "/v1/responses": "chat",
    "/v1/completions": "text_completion",
    "/v1/embeddings": "embeddings",
}


class Traced(Struct, frozen=True):
    """What a span is made of; ``parent`` is the client's traceparent."""

    ending: Ending
    parent: str | None
    ended_ns: int
    """By the wall clock."""


class Traces:
    """Of one process; ``close`` sends what is left.

    Raises:
        UsageError: the extra is not installed.
    """

    def __init__(self, told: "TelemetryConfig") -> None:
        self._queue: queue.SimpleQueue[Traced | None] = queue.SimpleQueue()
        self._provider = _provider(told)
        self._tracer = self._provider.get_tracer("withstand.gateway", __version__)
        self._thread = threading.Thread(target=self._work, name="traces", daemon=True)
        self._thread.start()

    def add(self, ending: Ending, parent: bytes | None) -> None:
        """A request is over."""
        if self._queue.qsize() < _WAITING_MAX:
            told = None if parent is None else parent.decode("latin-1")
            self._queue.put(Traced(ending, told, round(clock.wall_s() * 1e9)))

    def close(self) -> None:
        """No more of them."""
        self._queue.put(None)
        self._thread.join(5)
        self._provider.shutdown()

    def _work(self) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode  # noqa: PLC0415  the extra
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        propagator = TraceContextTextMapPropagator()
        while (told := self._queue.get()) is not None:
            ending = told.ending
            span = self._tracer.start_span(
                name_of(ending),
                propagator.extract({"traceparent": told.parent} if told.parent else {}),
                SpanKind.SERVER,
                attributes_of(ending),
                start_time=told.ended_ns - ending.total_ns,
            )
            if ending.outcome not in {Outcome.OK, Outcome.ENGINE_REFUSED}:
                span.set_status(Status(StatusCode.ERROR))
            span.end(told.ended_ns)


def traces_of(told: "TelemetryConfig | None", tell: Callable[[str], None]) -> Traces | None:
    """None: nobody wants them, or the system allows no thread to send them.

    Raises:
        UsageError: the extra is not installed.
    """
    if told is None:
        return None
    try:
        return Traces(told)
    except RuntimeError:  # as threading says it
        tell("No traces are sent, for the system allows no more threads; raise its limit. What is served is the same.")
        return None


def name_of(ending: Ending) -> str:
    """The operation, and the model where there is one."""
    return f"{_operation(ending)} {ending.model}" if ending.model else _operation(ending)


def attributes_of(ending: Ending) -> dict[str, Any]:
    """By OpenTelemetry's semantic conventions (gen_ai, http, server, error), and some of ours."""
    engine, _, port = (ending.engine or "").partition("/")[0].rpartition(":")
    answered = ending.outcome in _ANSWERS and ending.status >= 400
    failed = str(ending.status) if answered else ending.outcome.value
    told = {
        "gen_ai.operation.name": _operation(ending),
        "gen_ai.request.model": ending.model,
        "gen_ai.usage.input_tokens": ending.prompt_tokens,
        "gen_ai.usage.output_tokens": ending.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": ending.cached_tokens,
        "http.request.method": "POST",
        "http.route": ending.route,
        "http.response.status_code": ending.status or None,
        "server.address": engine or None,
        "server.port": int(port) if engine and port.isdigit() else None,
        "error.type": None if ending.outcome is Outcome.OK else failed,
        "withstand.request_id": ending.request_id,
        "withstand.key": ending.key,
        "withstand.hop_s": ending.hop_ns / 1e9,
        "withstand.queue_s": None if ending.queue_ns is None else ending.queue_ns / 1e9,
        "withstand.first_byte_s": None if ending.first_byte_ns is None else ending.first_byte_ns / 1e9,
    }
    return {name: value for name, value in told.items() if value is not None}


def _operation(ending: Ending) -> str:
    return _OPERATIONS.get(ending.route, ending.route.rpartition("/")[2])


def _provider(told: "TelemetryConfig") -> Any:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  the extra
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ModuleNotFoundError as e:
        raise UsageError(f"[telemetry] needs {e.name}: {extra('gateway-otel')}.") from None
    provider = TracerProvider(resource=Resource.create({"service.name": told.service}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{told.otlp.rstrip('/')}/v1/traces")))
    return provider
