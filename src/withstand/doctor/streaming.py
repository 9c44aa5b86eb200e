"""What the shape of answers means, in words; and how they are framed."""

from collections.abc import Iterator, Sequence

import msgspec

from withstand.doctor.finding import Fact, Finding, Question
from withstand.doctor.heard import Heard
from withstand.doctor.shape import Kind, Shape
from withstand.metrics.rounding import percent

SHAPE = Question("stream.shape", "How it streams")
FRAMING = Question("stream.framing", "The stream's framing")
END = Question("stream.end", "The stream's end")

_UNBUFFER = "Switch response buffering off on the path (nginx: proxy_buffering off)."


def judge_shape(shape: Shape, failed: Heard | None) -> Finding:
    """``failed``: an answer that was none."""
    if shape.kind is Kind.ONE_BODY:
        return SHAPE.wrong(
            "a stream was asked for, one JSON body came", "Have the hop pass `stream` on, and the answer as it comes."
        )
    if shape.kind is Kind.UNKNOWN:
        return _unknown(shape, failed)
    facts: dict[str, Fact] = msgspec.to_builtins(shape)
    said, cure = _WORDS[shape.kind](shape)
    return SHAPE.wrong(said, cure, **facts) if cure else SHAPE.ok(said, **facts)


def _unknown(shape: Shape, failed: Heard | None) -> Finding:
    if failed is not None:
        return SHAPE.wrong(f"no good streamed answer: {failed.why}", "Make a plain streamed request work first.")
    if shape.is_open:
        said = f"the first text comes after {shape.ttft_ms:.0f} ms; whether it was held back cannot be told"
        why = (
            f"{percent(shape.silent_share)} of the tokens came without"
            if shape.comparable
            else "short answers have no text"
        )
        return SHAPE.doubt(f"{said}, as {why}", "Of an agent, examine the model's server behind it.")
    return SHAPE.doubt(
        f"{shape.events} events in {shape.whole_ms:.0f} ms are too few, or come too fast, to tell",
        "Ask for longer answers by --tokens.",
    )


def _streams(shape: Shape) -> tuple[str, str]:
    pace = f"one every {shape.gap_ms:.1f} ms, the first after {shape.ttft_ms:.0f} ms"
    return f"{shape.events} events in {shape.pieces} pieces, {pace}", ""


def _whole(shape: Shape) -> tuple[str, str]:
    late = f"the first token comes after {shape.ttft_ms:.0f} ms, in a short answer after {shape.short_ttft_ms:.0f}"
    pieces = "one piece" if shape.pieces == 1 else f"{shape.pieces} pieces"
    return f"buffers whole answers: {late}, and {shape.events} events in {pieces}", _UNBUFFER


def _by_size(shape: Shape) -> tuple[str, str]:
    what = f"pieces of {shape.piece_bytes / 1024:.1f} KiB that end inside events, one every {shape.gap_ms:.0f} ms"
    return f"buffers by size: {what}", _UNBUFFER


def _by_time(shape: Shape) -> tuple[str, str]:
    what = f"one piece of {shape.piece_events:.1f} events every {shape.gap_ms:.0f} ms"
    cure = "Look for a batching interval (Ray Serve: stream_batching_interval_ms: 0; vLLM: --stream-interval 1)."
    return f"batches: {what}", cure


def _fake(shape: Shape) -> tuple[str, str]:
    silence = f"nothing for {shape.ttft_ms:.0f} ms, in which the answer was ready"
    played = f"then {shape.events} events, one every {shape.gap_ms:.1f} ms"
    cure = "The hop waits for the whole answer and plays it out: no TTFT or ITL behind it means anything; replace it."
    return f"fakes the stream: {silence}, {played}", cure


_WORDS = {
    Kind.STREAMS: _streams,
    Kind.WHOLE: _whole,
    Kind.BY_SIZE: _by_size,
    Kind.BY_TIME: _by_time,
    Kind.FAKE: _fake,
}


def judge_framing(streamed: Sequence[Heard]) -> Iterator[Finding]:
    """Of good streamed answers."""
    if not streamed:
        return
    heard = streamed[-1]
    facts: dict[str, Fact] = {"version": heard.version, "framed": heard.framed, "keep_alive": heard.keep_alive}
    cure = "Have the hop answer by HTTP/1.1 (nginx: proxy_http_version 1.1; elsewhere: chunked transfer coding)."
    if not heard.framed:
        said = f"HTTP/{heard.version}, ended by closing the connection: an answer that is cut looks like a whole one"
        yield FRAMING.doubt(said, cure, **facts)
    else:
        yield FRAMING.ok(f"HTTP/{heard.version}, {_coding(heard)}", **facts)
    yield _end(heard)


def _coding(heard: Heard) -> str:
    return "chunked" if "chunked" in heard.headers.get("transfer-encoding", "") else "with a length told beforehand"


def _end(heard: Heard) -> Finding:
    kind = heard.headers.get("content-type", "")
    if not heard.done:
        return END.doubt("no [DONE] at the end", "Have the hop pass the stream's last event.", content_type=kind)
    if "event-stream" not in kind:
        cure = "Have the hop answer streams as text/event-stream: browsers and libraries go by it."
        return END.doubt(f"its content type is {kind or 'missing'}", cure, content_type=kind)
    return END.ok("text/event-stream, a finish reason and [DONE]", content_type=kind)
