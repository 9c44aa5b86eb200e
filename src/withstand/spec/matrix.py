"""Lists in a plan → one stage for each combination. Pure, on the raw tree: what is typed knows no such lists.

What may be a list: a stage's ``max_concurrency`` and its arrivals' ``rate``, ``burstiness`` and ``speed``; any of a
workload's ``options``. Beside them, ``[workloads.NAME]`` are several workloads, each laid over ``[workload]``: every
stage without a workload of its own is measured with each. With ``cycles``, all of them are gone through so often.

A stage is named after what varies, the slowest first: ``chat in-512 rate-4``. Its name is what its seed comes from, so
a stage sends the same requests whatever stands beside it. A plan without lists comes back as it was.
"""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import msgspec

from withstand.errors import SpecError

Tree = dict[str, Any]
STAGES_MAX = 1_000

LOADS = {
    "arrivals.rate": "rate",
    "arrivals.burstiness": "burst",
    "arrivals.speed": "speed",
    "max_concurrency": "concurrency",
}
"""What may vary of a stage's load → how its name says so."""
_LENGTHS = {"input_len": "in", "output_len": "out", "prefix_len": "prefix", "suffix_len": "suffix"}


class Origin(msgspec.Struct, frozen=True):
    """Where a stage comes from, for errors to name a key of the file."""

    place: int
    workload_at: str | None = None
    """Where its workload stands, if that is not the stage."""
    picks: dict[str, int] = {}
    """Which of a list's values it has, by the key's path within the stage."""

    def path(self, within: str) -> str:
        """``.arrivals.rate`` of the made stage → the path of the key in the plan."""
        pick = f"[{index}]" if (index := self.picks.get(within.removeprefix("."))) is not None else ""
        if self.workload_at and within.startswith(".workload"):
            return f"{self.workload_at}{within.removeprefix('.workload')}{pick}"
        return f"$.stages[{self.place}]{within}{pick}"


class _Axis(msgspec.Struct, frozen=True):
    """One list: a key of the stage, its values, and how a name says them."""

    path: str
    word: str
    values: list[Any]

    def said(self, index: int) -> str:
        return f"{self.word}-{_said(self.values[index])}"


class _Source(msgspec.Struct, frozen=True):
    """One workload that a stage is measured with."""

    name: str | None
    workload: Tree | None
    """None = the stage needs none of its own: it has the plan's."""
    at: str | None


def expanded(raw: Tree) -> tuple[Tree, list[Origin]]:
    """The plan without lists, and where each of its stages comes from; what has another shape is left to the types.

    Raises:
        SpecError: a list is empty or says something twice, or they make too many stages.
    """
    stages = raw.get("stages", [{}])
    if not isinstance(stages, list) or not all(isinstance(stage, dict) for stage in stages):
        return raw, []
    sources = _sources(raw)
    made: list[tuple[Tree, Origin]] = []
    for place, stage in enumerate(stages):
        patterns = _patterns(stage, place, _sources_of(stage, place, sources), alone=len(stages) == 1)
        _ensure_room(patterns, len(made))
        made += [one for pattern in patterns for one in pattern.made()]
    made = _gone_through(made, raw.get("cycles"))
    tree = raw | {"stages": [stage for stage, _ in made]}
    for key in ("workload", "workloads"):
        if isinstance(raw.get(key), dict):
            tree[key] = _firsts(raw[key]) if key == "workload" else {n: _firsts(w) for n, w in raw[key].items()}
    return tree, [origin for _, origin in made]


def _gone_through(made: list[tuple[Tree, Origin]], cycles: Any) -> list[tuple[Tree, Origin]]:
    """The stages again and again, each time under names of their own; warm-ups once, in front.

    Raises:
        SpecError: these are too many.
    """
    if not isinstance(cycles, int) or cycles <= 1:
        return made
    first = [(stage, origin) for stage, origin in made if stage.get("warmup") is True]
    others = [(stage, origin) for stage, origin in made if stage.get("warmup") is not True]
    if len(others) * cycles > STAGES_MAX:
        raise SpecError(
            f"The plan is wrong: {cycles:,} times {len(others):,} stages are more than the {STAGES_MAX:,} that are "
            "allowed - at `$.cycles`."
        )
    return first + [
        (stage | {"name": f"{stage.get('name') or f'stage-{origin.place + 1}'}-{cycle}"}, origin)
        for cycle in range(1, cycles + 1)
        for stage, origin in others
    ]


# Workloads.


def _sources(raw: Tree) -> list[_Source]:
    """The plan's workloads; a single one without lists need not be written into the stages."""
    common = raw.get("workload")
    base = common if isinstance(common, dict) else {}
    named = raw.get("workloads")
    if isinstance(named, dict) and named:
        own = {name: table if isinstance(table, dict) else {} for name, table in named.items()}
        return [_Source(name, base | table, f"$.workloads.{name}") for name, table in own.items()]
    if _option_axes(base, "$.workload"):
        return [_Source(None, base, "$.workload")]
    return [_Source(None, None, None)]


def _sources_of(stage: Tree, place: int, sources: list[_Source]) -> list[_Source]:
    """Those of one stage. A warm-up is no measurement: the first is enough for it."""
    own = stage.get("workload")
    if own is not None:
        return [_Source(None, own if isinstance(own, dict) else None, f"$.stages[{place}].workload")]
    if stage.get("warmup") is True and sources[0].workload is not None:
        return [msgspec.structs.replace(sources[0], name=None, workload=_firsts(sources[0].workload))]
    return sources


def _firsts(workload: Any) -> Any:
    """The workload with the first of each list."""
    if not isinstance(workload, dict) or not isinstance(options := workload.get("options"), dict):
        return workload
    first = {key: value[0] if isinstance(value, list) and value else value for key, value in options.items()}
    return workload | {"options": first}


# The product.


class _Pattern(msgspec.Struct, frozen=True):
    """A stage of the file with one of its workloads: what its stages have in common."""

    stage: Tree
    place: int
    base: str
    """Its own name."""
    source: _Source
    options: list[_Axis]
    loads: list[_Axis]

    @property
    def count(self) -> int:
        return math.prod(len(axis.values) for axis in (*self.options, *self.loads))

    def made(self) -> Iterator[tuple[Tree, Origin]]:
        """The stages, the load varying fastest."""
        axes = [*self.options, *self.loads]
        stage = self.stage if self.source.workload is None else self.stage | {"workload": self.source.workload}
        for picks in itertools.product(*(range(len(axis.values)) for axis in axes)):
            said = [axis.said(pick) for axis, pick in zip(axes, picks, strict=True)]
            chosen = {axis.path: axis.values[pick] for axis, pick in zip(axes, picks, strict=True)}
            slow = [self.source.name or "", *said[: len(self.options)]]
            tree = _named(_with(stage, chosen), slow, [self.base, *said[len(self.options) :]])
            yield tree, Origin(self.place, self.source.at, dict(zip(chosen, picks, strict=True)))


def _patterns(stage: Tree, place: int, sources: list[_Source], *, alone: bool) -> list[_Pattern]:
    loads = [axis for path, word in LOADS.items() if (axis := _axis(stage, path, word, f"$.stages[{place}].{path}"))]
    found = []
    for source in sources:
        options = _option_axes(source.workload or {}, source.at or "")
        its_own = loads or (options and stage.get("workload") is not None)
        spoken_for = its_own or (alone and (options or source.name))
        base = stage.get("name") or ("" if spoken_for else f"stage-{place + 1}")
        found.append(_Pattern(stage, place, str(base), source, options, loads))
    return found


def _named(stage: Tree, slow: list[str], fast: list[str]) -> Tree:
    """What varies slowly is a heading too, where the stage has none and there is something to stand below it."""
    heading, below = " ".join(filter(None, slow)), " ".join(filter(None, fast))
    named = stage | {"name": " ".join(filter(None, (heading, below)))}
    return named | {"phase": heading} if heading and below and stage.get("phase") is None else named


def _with(stage: Tree, chosen: dict[str, Any]) -> Tree:
    """A copy with other values at some paths; what they lead through is copied too."""
    copy = dict(stage)
    for path, value in chosen.items():
        *parents, last = path.split(".", 2)
        node = copy
        for part in parents:
            node[part] = dict(node[part])
            node = node[part]
        node[last] = value
    return copy


def _ensure_room(patterns: list[_Pattern], made: int) -> None:
    count = made + sum(pattern.count for pattern in patterns)
    if count > STAGES_MAX:
        raise SpecError(
            f"The plan is wrong: its lists make {count:,} stages up to here, and {STAGES_MAX:,} are allowed; "
            f"shorten one - at `$.stages[{patterns[0].place}]`."
        )


# Lists.


def _option_axes(workload: Tree, at: str) -> list[_Axis]:
    options = workload.get("options")
    if not isinstance(options, dict):
        return []
    keys = [(key, f"workload.options.{key}") for key in options]
    words = {key: _LENGTHS.get(key, str(key).replace("_", "-")) for key in options}
    found = (_axis({"workload": workload}, path, words[key], f"{at}.options.{key}") for key, path in keys)
    return [axis for axis in found if axis]


def _axis(tree: Tree, path: str, word: str, at: str) -> _Axis | None:
    """The list at a path; None = there is none."""
    value: Any = tree
    for part in path.split(".", 2):
        value = value.get(part) if isinstance(value, dict) else None
    if not isinstance(value, list):
        return None
    said = [_said(item) for item in value]
    if not said:
        raise SpecError(f"The plan is wrong: an empty list gives no stage - at `{at}`.")
    if len(set(said)) < len(said):
        twice = next(text for text in said if said.count(text) > 1)
        raise SpecError(f"The plan is wrong: {twice} stands there twice - at `{at}`.")
    return _Axis(path, word, value)


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_said, value))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)
