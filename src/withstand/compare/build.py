"""From sides to a ``Comparison``: groups of equal conditions, a row a number, and one correction over all of them."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

import msgspec

from withstand.compare.allowance import allowance
from withstand.compare.difference import Judge, Pair, corrected, pair_of
from withstand.compare.estimate import Estimate, of_runs
from withstand.compare.headline import headline, method_told
from withstand.compare.match import Matched, match
from withstand.compare.pairs import pair_of_turns
from withstand.compare.rows import Asked, ahead, chosen, untold
from withstand.compare.run import ComparedRun, ComparedSide, Turn, one_schedule
from withstand.compare.setting import other_labels, shared_conditions
from withstand.compare.shape import SHOWN, Cell, Comparison, Difference, Group, Method, Row, Side, Verdict, Volume
from withstand.compare.trust import (
    MEDIAN_ANSWER,
    Weighed,
    forbidding,
    is_other_work,
    other_definition,
    other_work,
    weighed,
)
from withstand.errors import UsageError
from withstand.interop.checks import joint_doubts
from withstand.metrics.doubts import Doubt
from withstand.metrics.reach import Circumstances, circumstances_of
from withstand.metrics.summary import StageSummary

NEGLIGIBLE_PERCENT = 1.0


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the reader asked for."""

    metrics: tuple[str, ...] = ()
    negligible_percent: float = NEGLIGIBLE_PERCENT
    aim_percent: float | None = None
    """What the measurement should be long enough to show."""
    force: bool = False


_VOID = Pair(method=Method.NONE, log_ratio=None)
"""Of other work: not even how many times faster may be said."""


class _Draft(msgspec.Struct, kw_only=True):
    """A row before the correction over all rows."""

    asked: Asked
    cells: list[Cell]
    pairs: list[Pair | None]
    forbidden: list[tuple[Doubt, ...]]
    """Per side: the doubts for which no verdict may be given against the baseline."""
    defined: list[str | None]
    """Per side: how it means something else than the baseline."""
    owners: dict[Doubt, str]
    chances: list[float | None] = []


class _GroupDraft(msgspec.Struct):
    matched: Matched
    doubts: tuple[Doubt, ...]
    rows: list[_Draft]


def compare(sides: Sequence[ComparedSide], options: Options | None = None) -> Comparison:
    """Each side against the first.

    Raises:
        UsageError: nothing can be compared, or no side tells of a metric that was asked for.
    """
    options = options or Options()
    if lost := untold([key for side in sides for run in side.runs for key in run.estimates], options.metrics):
        raise UsageError(lost)
    matching = match(sides, force=options.force)
    drafts = [_group_draft(sides, matched, options) for matched in matching.groups]
    tests = _correct([row for draft in drafts for row in draft.rows])
    judge = Judge(comparisons=tests, negligible_percent=options.negligible_percent, aim_percent=options.aim_percent)
    groups = tuple(_group(sides, draft, judge) for draft in drafts)
    doubts = _once(doubt for draft in drafts for doubt in draft.doubts)
    told = tuple(_side(side, [m.members[i] for m in matching.groups]) for i, side in enumerate(sides))
    return Comparison(
        sides=told,
        groups=groups,
        unmatched=matching.unmatched,
        forced=matching.forced,
        headline=headline(told, groups, doubts, forced=matching.forced),
        doubts=doubts,
        aim_percent=options.aim_percent,
        method=method_told(told, groups, tests, options.negligible_percent),
    )


def _group_draft(sides: Sequence[ComparedSide], matched: Matched, options: Options) -> _GroupDraft:
    runs = [(side.label, run) for side, member in zip(sides, matched.members, strict=True) for run in member]
    joint = joint_doubts([run.imported for _, run in runs if run.imported])
    work = None if any("did not do the same work" in doubt.sentence for doubt in joint) else other_work(runs)
    doubts = (*joint, work) if work else joint
    keys = dict.fromkeys(key for _, run in runs for key in run.estimates)
    circumstances = [[circumstances_of(run.summary) for run in member] for member in matched.members]
    rows = [_draft(asked, matched, circumstances, sides, doubts) for asked in chosen(keys, options.metrics)]
    return _GroupDraft(matched, doubts, rows)


def _draft(
    asked: Asked,
    matched: Matched,
    circumstances: Sequence[Sequence[Circumstances]],
    sides: Sequence[ComparedSide],
    joint: Sequence[Doubt],
) -> _Draft:
    """``circumstances`` are those of the runs, side by side."""
    found = [[e for run in runs if (e := run.estimates.get(asked.key))] for runs in matched.members]
    doubts = [_weighed(asked, *of_side) for of_side in zip(matched.members, circumstances, strict=True)]
    cells = [_cell(estimates, _once(w.doubt for w in own)) for estimates, own in zip(found, doubts, strict=True)]
    shared = weighed(joint, asked.key, Circumstances())
    pairs: list[Pair | None] = [None]
    forbidden: list[tuple[Doubt, ...]] = [()]
    defined: list[str | None] = [None]
    for place in range(1, len(sides)):
        against = [*shared, *doubts[0], *doubts[place]]
        forbidden.append(forbidding(against))
        void = is_other_work(w.doubt for w in against)
        pair = _VOID if void else _pair(matched, found, place, asked.key) or _nothing(sides, found, place)
        allowed = allowance(forbidden[place], [matched.members[i] for i in (0, place)], asked.key)
        pairs.append(pair if allowed is None else pair.less(allowed))
        labelled = [(sides[i].label, run) for i in (0, place) for run in matched.members[i]]
        defined.append(other_definition(asked.metric, labelled))
    owners = {w.doubt: side.label for side, own in zip(reversed(sides), reversed(doubts), strict=True) for w in own}
    return _Draft(asked=asked, cells=cells, pairs=pairs, forbidden=forbidden, defined=defined, owners=owners)


def _weighed(asked: Asked, runs: Sequence[ComparedRun], circumstances: Sequence[Circumstances]) -> list[Weighed]:
    return [w for run, of in zip(runs, circumstances, strict=True) for w in weighed(run.summary.doubts, asked.key, of)]


def _pair(matched: Matched, found: Sequence[Sequence[Estimate]], place: int, key: str) -> Pair | None:
    """None where a side has no value."""
    baseline, side = matched.members[0], matched.members[place]
    if not found[0] or not found[place]:
        return None
    if all(run.turn for run in (*baseline, *side)):
        pair = pair_of_turns(_turns(baseline, key), _turns(side, key))
    else:
        single = len(baseline) == len(side) == 1
        pair = pair_of(found[0], found[place], one_schedule=single and one_schedule(baseline[0], side[0]))
    return msgspec.structs.replace(pair, requests=min(run.summary.attempted for run in (*baseline, *side)) or None)


def _turns(runs: Sequence[ComparedRun], key: str) -> dict[Turn, Estimate]:
    return {run.turn: run.estimates[key] for run in runs if run.turn and key in run.estimates}


def _nothing(sides: Sequence[ComparedSide], found: Sequence[Sequence[Estimate]], place: int) -> Pair:
    missing = sides[0 if not found[0] else place].label
    return Pair(method=Method.NONE, log_ratio=None, lack=f"not told by {missing}")


def _cell(estimates: Sequence[Estimate], doubts: tuple[Doubt, ...]) -> Cell:
    if not estimates:
        return Cell(value=None, runs=0, doubts=doubts)
    if len(estimates) > 1 and min(e.value for e in estimates) <= 0:
        return Cell(value=fmean(e.value for e in estimates), runs=len(estimates), doubts=doubts)
    one = estimates[0] if len(estimates) == 1 else of_runs(estimates)
    return Cell(value=one.value, interval=one.interval, n=one.n, runs=len(estimates), doubts=doubts)


def _correct(rows: Sequence[_Draft]) -> int:
    """Fill in the corrected chances; how many tests there are. Two equal values without any spread are no test."""
    for row in rows:
        row.chances = [pair.chance if pair else None for pair in row.pairs]
    tests = [(row, i, c) for row in rows for i, c in enumerate(row.chances) if c is not None and _is_test(row.pairs[i])]
    for (row, place, _), chance in zip(tests, corrected([c for _, _, c in tests]), strict=True):
        row.chances[place] = chance
    return len(tests)


def _is_test(pair: Pair | None) -> bool:
    return pair is not None and not (pair.error == 0 and pair.log_ratio == 0)


def _group(sides: Sequence[ComparedSide], draft: _GroupDraft, judge: Judge) -> Group:
    matched = draft.matched
    return Group(
        label=matched.label,
        rate=matched.setting.rate,
        concurrency=matched.setting.concurrency,
        phase=matched.setting.phase,
        conditions=shared_conditions([run.setting for runs in matched.members for run in runs]),
        rows=tuple(_row(row, judge) for row in draft.rows),
        volumes=tuple(_volume([run.summary for run in runs]) for runs in matched.members),
        remarks=(*matched.remarks, *(d.sentence for d in draft.doubts), *_labels_told(sides, matched)),
    )


def _volume(summaries: Sequence[StageSummary]) -> Volume:
    """A sum with an unknown part is unknown."""

    def total(name: str) -> float | None:
        known = [value for s in summaries if (value := getattr(s, name)) is not None]
        return sum(known) if known and len(known) == len(summaries) else None

    return Volume(
        attempted=_whole(total("attempted")),
        completed=_whole(total("completed")),
        duration_s=total("duration_s"),
        input_tokens=_whole(total("total_input_tokens")),
        output_tokens=_whole(total("total_output_tokens")),
        runs=len(summaries),
        unanswered=sum(s.completed == 0 or s.success_rate == 0 for s in summaries),
    )


def _whole(count: float | None) -> int | None:
    return None if count is None else int(count)


def _row(draft: _Draft, judge: Judge) -> Row:
    asked = draft.asked
    fastest, by = ahead(_levels(draft), lower_is_better=asked.lower_is_better)
    differences = tuple(_differences(draft, judge))
    return Row(
        metric=asked.key,
        title=asked.title,
        unit=asked.unit,
        lower_is_better=asked.lower_is_better,
        cells=tuple(draft.cells),
        fastest=fastest,
        faster_by_percent=by,
        differences=differences,
        because=_once(doubt for doubts in _in_the_way(draft, differences) for doubt in doubts),
        lacks=tuple(dict.fromkeys(_lacks(draft, differences, judge))),
        cautions=tuple(dict.fromkeys(_cautions(draft, differences))),
        remark=_remark(draft, differences, judge),
    )


def _levels(draft: _Draft) -> list[float | None]:
    """What tells who is ahead. Of pairs it is their differences: values still have the drift in them."""
    if any(pair is _VOID for pair in draft.pairs):
        return [None]
    if not any(pair and pair.method is Method.PAIRS for pair in draft.pairs):
        return [cell.value for cell in draft.cells]
    ratios = [pair.log_ratio if pair else 0.0 for pair in draft.pairs]
    return [None if ratio is None else math.exp(ratio) for ratio in ratios]


def _differences(draft: _Draft, judge: Judge) -> Iterator[Difference | None]:
    for pair, chance, doubts, other in zip(draft.pairs, draft.chances, draft.forbidden, draft.defined, strict=True):
        if pair is None:
            yield None
            continue
        trusted = other is None and (not doubts or pair.allowed is not None)
        yield judge.difference(pair, chance, lower_is_better=draft.asked.lower_is_better, trusted=trusted)


def _in_the_way(draft: _Draft, differences: Sequence[Difference | None]) -> Iterator[tuple[Doubt, ...]]:
    """Per side: what forbids a verdict, where there is none in spite of it."""
    for doubts, difference in zip(draft.forbidden, differences, strict=True):
        yield () if difference and difference.verdict in SHOWN else doubts


def _remark(draft: _Draft, differences: Sequence[Difference | None], judge: Judge) -> str | None:
    first = [doubts[0] for doubts in _in_the_way(draft, differences) if doubts]
    said = [f"{draft.owners[d]}: {d.sentence}" if d in draft.owners else d.sentence for d in first]
    return " ".join(dict.fromkeys([*said, *_lacks(draft, differences, judge), *_cautions(draft, differences)])) or None


def _lacks(draft: _Draft, differences: Sequence[Difference | None], judge: Judge) -> Iterator[str]:
    yield from (other for other in draft.defined if other)
    yield from (_sentence(pair.lack) for pair in draft.pairs if pair and pair.lack)
    for difference in differences:
        if difference and difference.is_negligible:
            yield f"A difference is shown, but under {judge.negligible_percent:g} %: too small to matter."


def _cautions(draft: _Draft, differences: Sequence[Difference | None]) -> Iterator[str]:
    for pair, difference in zip(draft.pairs, differences, strict=True):
        if pair and pair.allowed is not None and difference and difference.verdict in SHOWN:
            yield "Shown although the client was slow: its own error is taken off, and the interval holds it."
        if difference and difference.verdict is Verdict.NO_DIFFERENCE and difference.is_chance_of_many:
            yield "The interval leaves 0 out; but so many metrics were compared that one does by chance (Holm)."


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _labels_told(sides: Sequence[ComparedSide], matched: Matched) -> list[str]:
    """Labels that differ: often the very thing that is compared."""
    own = matched.members[0][0].setting
    told = []
    for side, runs in zip(sides[1:], matched.members[1:], strict=True):
        differing: Mapping[str, str] = other_labels(own, runs[0].setting) if runs else {}
        named = [f"{label} {said}" for label, said in differing.items() if label != MEDIAN_ANSWER]
        if named:
            told.append(f"Differs with {side.label}: {'; '.join(named)}.")
    return told


def _once(doubts: Iterator[Doubt]) -> tuple[Doubt, ...]:
    return tuple(dict.fromkeys(doubts))


def _side(side: ComparedSide, compared: Iterable[Sequence[ComparedRun]]) -> Side:
    models = {run.setting.model for run in side.runs}
    prices = {run.price_per_hour for run in side.runs}
    token_prices = {run.token_price for run in side.runs}
    return Side(
        label=side.label,
        sources=side.sources,
        tool=side.tool,
        model=models.pop() if len(models) == 1 else None,
        price_per_hour=prices.pop() if len(prices) == 1 else None,
        token_price=token_prices.pop() if len(token_prices) == 1 else None,
        facts=all(run.summary.facts for run in side.runs),
        empty=side.empty,
        doubts=_once(d for runs in compared for run in runs for d in run.summary.doubts if d.blocking),
    )
