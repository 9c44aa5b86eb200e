"""The server's side of a stage in one line, where it says something: ``server: running p50 8, max 12; KV 34 %``."""

from collections.abc import Iterator

from withstand.metrics.server import Level, ServerSide
from withstand.metrics.summary import StageSummary, Summary
from withstand.report.numbers import count, counted, number, percent, plain

_BUSY_SHARE = 0.8
"""From here on the load on the machine that sends is worth a word."""
_COUNTS_APART = 0.02
_MB = 1_000_000


def server_lines(summary: Summary) -> Iterator[str]:
    """A line a stage; the stage is named where there are several."""
    for stage in summary.stages:
        if stage.server and (facts := list(_facts(stage, stage.server))):
            whose = f" ({stage.name})" if len(summary.stages) > 1 else ""
            yield f"server{whose}: {'; '.join(facts)}"


def _facts(stage: StageSummary, server: ServerSide) -> Iterator[str]:
    for name, level in (("running", server.running), ("waiting", server.waiting)):
        if level:
            yield f"{name} p50 {plain(level.p50)}, max {plain(level.max)}"
    if server.kv_share and server.kv_share.max:
        yield f"KV {_share(server.kv_share)}"
    if server.prefix_share is not None:
        yield f"prefix hits {percent(server.prefix_share)}"
    if server.preemptions:
        yield f"preempted {count(server.preemptions)}"
    yield from _transfers(server)
    yield from _gateway(server)
    if split := ttft_split(stage):
        yield split
    if server.gpu_share:
        yield f"GPU {_share(server.gpu_share)}"
    if server.cpu_share and server.cpu_share.p50 >= _BUSY_SHARE:
        yield f"this machine's CPU {_share(server.cpu_share)}"


def _transfers(server: ServerSide) -> Iterator[str]:
    """Between prefill and decode, where they are apart."""
    if server.transfers:
        each_mb = None if server.transfer_bytes is None else server.transfer_bytes / server.transfers / _MB
        size = "" if each_mb is None else f", {number(each_mb)} MB each"
        yield f"KV came {counted(server.transfers, 'time')}{size} in {number(server.transfer_mean_ms)} ms (mean)"
    if server.transfers_failed:
        yield f"did not come {counted(server.transfers_failed, 'time')}"


def _gateway(server: ServerSide) -> Iterator[str]:
    if server.passing:
        yield f"gateway: under way p50 {plain(server.passing.p50)}, max {plain(server.passing.max)}"
    if server.held and server.held.max:
        yield f"waiting there p50 {plain(server.held.p50)}, max {plain(server.held.max)}"
    if server.hop_mean_ms is not None:
        yield f"its own time to an answer's end {number(server.hop_mean_ms)} ms a request"


def _share(level: Level) -> str:
    return f"{percent(level.p50)} (max {percent(level.max)})"


def ttft_split(stage: StageSummary) -> str | None:
    """``mean TTFT 83.22 ms = queue 0.01 + prefill 53.62 + else in the server 21.63 + outside of it 7.96``.

    As far as the server tells. What is outside is known where it has counted the same answers as we have.
    """
    server = stage.server
    if server is None or (server.queue_mean_ms is None and server.prefill_mean_ms is None):
        return None
    inside = [("queue", server.queue_mean_ms), ("prefill", server.prefill_mean_ms)]
    known = [(name, ms) for name, ms in inside if ms is not None]
    rest_ms = None if server.ttft_mean_ms is None else server.ttft_mean_ms - sum(ms for _, ms in known)
    outside_ms, outside = _outside_ms(stage, server), "outside of it"
    if len(known) == len(inside) and rest_ms is not None and rest_ms >= 0:
        known.append(("else in the server", rest_ms))
        hop_ms = server.hop_mean_ms
        if outside_ms is not None and hop_ms is not None and hop_ms <= outside_ms:
            known.append(("gateway by its metrics", hop_ms))
            outside_ms, outside = outside_ms - hop_ms, "outside of both"
        if outside_ms is not None:
            known.append((outside, outside_ms))
    parts = " + ".join(f"{name} {number(ms)}" for name, ms in known)
    whole_ms = stage.ttft.mean if outside_ms is not None else server.ttft_mean_ms
    whose = "" if outside_ms is not None else " by the server"
    is_whole = known[-1][0] in {"else in the server", outside}
    return f"mean TTFT{whose} {number(whole_ms)} ms = {parts}" if is_whole else f"in the server, means in ms: {parts}"


def _outside_ms(stage: StageSummary, server: ServerSide) -> float | None:
    """Network, hops, and our own share: our mean without the server's."""
    ours_ms, theirs_ms, answered = stage.ttft.mean, server.ttft_mean_ms, server.answered
    if ours_ms is None or theirs_ms is None or not answered or not server.whole or ours_ms < theirs_ms:
        return None
    return ours_ms - theirs_ms if abs(answered - stage.attempted) <= _COUNTS_APART * stage.attempted else None
