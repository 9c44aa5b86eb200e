"""A run as it goes on, in as many lines as a terminal has: a ``Snapshot`` → text. Pure.

What matters least goes first where there is little room: the plan's other stages, then the longer percentiles.
"""

from collections.abc import Iterator, Sequence

from rich.text import Text

from withstand.app.estimate import lasting
from withstand.cli.block import stage_title
from withstand.cli.sparkline import sparkline
from withstand.metrics.live import METRICS, BracketNow, Current, LatencyNow, ServerNow, Snapshot, StageNow, remaining_s
from withstand.metrics.rounding import whole_percent
from withstand.report.numbers import counted, number, percent, plain
from withstand.wire.reply import one_line

COLUMNS_MIN, ROWS_MIN = 60, 12
"""Below, a bar tells more."""
_LABEL, _NUMBER, _BAR = 11, 9, 20
_STAGES_MIN, _DOUBTS_MAX, _ERRORS_MAX = 3, 2, 2
_MARKS = {"done": ("✓", "green"), "running": ("▶", "bold"), "planned": ("·", "dim")}
_OTHER_MARK = ("✗", "red")
_WIDE = 100


def panel(snapshot: Snapshot, width: int, height: int) -> list[Text]:
    """At most ``height`` lines of at most ``width`` cells."""
    now = snapshot.current
    below = [*_figures(now, width), *_around(snapshot, now)] if now else []
    head = _head(snapshot)
    room = max(_STAGES_MIN, height - len(below) - 1)
    lines = [head, *_stages(snapshot.stages, snapshot.to_come, room), *below][:height]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


def _head(snapshot: Snapshot) -> Text:
    where = " · ".join(one_line(text) for text in (snapshot.target, snapshot.model) if text)
    left = "" if snapshot.left_s is None else f", about {lasting(round(snapshot.left_s))} left"
    gone = "" if snapshot.elapsed_s is None else lasting(round(snapshot.elapsed_s))
    return Text.assemble((f"{gone}{left}", "bold"), ("  " + where, "dim"))


# The plan.


def _stages(stages: Sequence[StageNow], to_come: int, room: int) -> Iterator[Text]:
    """Those about the one that goes on; what has no room is counted."""
    at = next((i for i, stage in enumerate(stages) if stage.state == "running"), len(stages) - 1)
    shown = min(room, len(stages))
    if room < len(stages) + bool(to_come):
        shown = min(room - 1, len(stages))
    first = min(max(0, at - shown // 2), len(stages) - shown)
    for stage in stages[first : first + shown]:
        yield _stage(stage)
    if shown < len(stages) or to_come:
        yield Text(f"  {first} before these, {len(stages) - first - shown + to_come} after", "dim")


def _stage(stage: StageNow) -> Text:
    mark, style = _MARKS.get(stage.state, _OTHER_MARK)
    title = one_line(stage_title(stage.name, stage.phase), 28)
    return Text.assemble(
        (f"{mark} ", style), (f"{title:<28} ", "bold" if stage.state == "running" else ""), _how_far(stage)
    )


def _how_far(stage: StageNow) -> Text:
    if stage.state == "planned":
        return Text("")
    done = "" if stage.done is None else f"{stage.done:,}"
    of = f"/{stage.planned:,}" if stage.planned and stage.state == "running" else ""
    if stage.state != "running":
        words = "" if stage.state == "done" else stage.state.replace("_", " ")
        took = "" if stage.elapsed_s is None else lasting(stage.elapsed_s)
        return Text("  ".join(text for text in (words, took, f"{done} done" if done else "") if text), "dim")
    left_s = remaining_s(stage.elapsed_s or 0.0, stage.share)
    left = "" if left_s is None else f"  {lasting(round(left_s))} left"
    return Text.assemble(_bar(stage.share), f" {done}{of}{left}")


def _bar(share: float | None) -> Text:
    if share is None:
        return Text("")
    full = round(share * _BAR)
    return Text.assemble(("━" * full, "green"), ("━" * (_BAR - full), "dim"), f" {whole_percent(share):>5}")


# The stage that goes on.


def _figures(now: Current, width: int) -> Iterator[Text]:
    yield Text("")
    yield _rates(now)
    yield _counts(now)
    course = max(0, width - _LABEL - _NUMBER * (5 if width >= _WIDE else 4) - 2)
    yield _headings(now, width)
    for name in METRICS:
        yield _latency(name, now.latencies[name], width, course)


def _rates(now: Current) -> Text:
    asked = "" if now.rate_asked is None else f"asked {plain(now.rate_asked)}  "
    sent = "" if now.rate_sent is None else f"sent {number(now.rate_sent)}  "
    line = Text.assemble((f"{'requests/s':<{_LABEL}}", "dim"), f"{asked}{sent}answered {number(now.rate_ended)}  ")
    return line.append(sparkline(now.pace.ended, _BAR) if now.pace else "", "cyan")


def _counts(now: Current) -> Text:
    flying = "" if now.in_flight is None else f"{now.in_flight:,} in flight  "
    line = Text.assemble((f"{'tokens/s':<{_LABEL}}", "dim"), f"{number(now.output_tokens_per_s)}  {flying}")
    line.append(f"{now.failed:,} failed  ", "red" if now.failed else "")
    if now.good and now.good.whole is not None:
        line.append(f"{percent(now.good.whole)} good")
    return line


def _headings(now: Current, width: int) -> Text:
    names = ("p50", "p95", "p99", *(("all p50", "all p95") if width >= _WIDE else ("all p50",)))
    of = "ms, 10 s" if now.sampled is None else f"ms, {percent(now.sampled)}"
    return Text(f"{of:<{_LABEL}}" + "".join(f"{name:>{_NUMBER}}" for name in names), "dim")


def _latency(name: str, latency: LatencyNow, width: int, course: int) -> Text:
    rolling, whole = latency.rolling, latency.whole
    values = (rolling.p50, rolling.p95, rolling.p99, whole.p50, *((whole.p95,) if width >= _WIDE else ()))
    cells = "".join(f"{number(value):>{_NUMBER}}" for value in values)
    return Text.assemble((f"{name.upper():<{_LABEL}}", "dim"), cells, "  ", (sparkline(latency.course, course), "cyan"))


# What stands around it.


def _around(snapshot: Snapshot, now: Current) -> Iterator[Text]:
    if snapshot.server and (told := _server(snapshot.server)):
        yield Text.assemble((f"{'server':<{_LABEL}}", "dim"), told)
    if snapshot.limit and snapshot.limit.tried:
        yield Text.assemble((f"{'limit':<{_LABEL}}", "dim"), _limit(snapshot.limit))
    for error in now.errors[:_ERRORS_MAX]:
        said = f": {one_line(error.text)}" if error.text else ""
        yield Text.assemble((f"{'error':<{_LABEL}}", "red"), f"{error.count:,} {error.status}{said}")
    for doubt in now.doubts[:_DOUBTS_MAX]:
        told = f"{doubt.kind.spoken}: {doubt.brief or one_line(doubt.sentence)}"
        yield Text.assemble((f"{'doubt':<{_LABEL}}", "yellow"), told)


def _server(server: ServerNow) -> str:
    levels = server.levels
    told = [f"{levels[name]:,.0f} {name}" for name in ("running", "waiting") if name in levels]
    told += [f"KV cache {percent(levels['kv_share'])}"] if "kv_share" in levels else []
    told += [f"GPU {percent(levels['gpu_share'])}"] if "gpu_share" in levels else []
    return "  ".join(told)


def _limit(limit: BracketNow) -> str:
    unit = "req/s" if limit.axis == "rate" else "users"
    tried = f"{counted(limit.tried, 'load')} tried"
    if limit.low is None and limit.high is None:
        return f"not known yet, {tried}"
    return f"{_between(limit.low, limit.high)} {unit}, {tried}"


def _between(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"below {plain(high)}" if low is None else f"above {plain(low)}"
    return f"between {plain(low)} and {plain(high)}"
