"""The page's prose: masthead, doubts, key figures, plan and machine, definitions."""

from collections.abc import Mapping, Sequence
from typing import Any

from withstand.metrics.catalogue import CATALOGUE
from withstand.metrics.summary import Summary
from withstand.report.about import About
from withstand.report.agent import agent_lines
from withstand.report.cold import cold_lines
from withstand.report.columns import name_of
from withstand.report.figures import Figure, figures
from withstand.report.markup import Markup, joined, tag, typed, unbroken
from withstand.report.numbers import counted, seconds, utc
from withstand.report.server import server_lines
from withstand.report.standing import Case, Heard, few, heard, standing, told_of

_LISTED_MAX = 40
_BRIEF_MAX = 12
_DEFINED = (
    "ttft",
    "tpot",
    "itl",
    "itl_per_token",
    "itl_request_mean",
    "e2el",
    "response",
    "output_throughput",
    "ledger",
    "achieved_rate",
    "concurrency_peak",
    "steady",
)


def masthead(summary: Summary, about: About) -> Markup:
    """What was measured, on what, and whether it stands."""
    verdict = standing(summary)
    return tag(
        "header",
        tag("p", "Load test", class_="eyebrow"),
        tag("h1", about.title),
        tag("p", _extent(summary), class_="extent"),
        tag("p", _place(summary, about), class_="place"),
        tag("p", tag("a", "What the stack's monitoring saw", href=about.board), class_="place") if about.board else "",
        tag("p", typed(verdict.sentence), class_=f"verdict {verdict.level}"),
    )


def _extent(summary: Summary) -> str:
    phases = {stage.phase for stage in summary.stages if stage.phase and name_of(stage) == stage.name}
    requests = sum(stage.attempted for stage in summary.stages)
    duration_s = sum(stage.duration_s or 0.0 for stage in summary.stages)
    extent = f"{counted(requests, 'request')} in {counted(len(summary.stages), 'stage')}"
    extent += f" of {counted(len(phases), 'phase')}" if phases else ""
    return f"{extent}, {seconds(duration_s)} of load" if duration_s else extent


def _place(summary: Summary, about: About) -> str:
    when = about.created_utc and utc(about.created_utc)
    backend = f"backend {summary.backend}" if summary.backend else None
    facts = [about.engine, summary.target, backend, when]
    return " · ".join(fact for fact in facts if fact)


def doubts(summary: Summary) -> Markup:
    """Each kind once; nothing at all where there is none."""
    said = heard(summary)
    return doubts_section([doubt_item(doubt, "stage") for doubt in said]) if said else Markup()


def doubts_section(items: Sequence[Markup]) -> Markup:
    """A list of items, loudest first."""
    listed = tag("ol", *items, class_="doubts")
    return tag("section", tag("h2", "Doubts"), tag("div", listed, class_="body"), id="doubts")


def doubt_item(doubt: Heard, place: str = "", number: int | None = None) -> Markup:
    """One kind of doubt; ``place`` is the noun for where it was seen; a ``number`` is what tables refer to."""
    first, *others = doubt.cases
    kind = doubt.kind.spoken.capitalize()
    label = f"{kind}, blocks the headline" if doubt.blocking else kind
    return tag(
        "li",
        tag("p", f"{number} · {label}" if number else label, class_="kind"),
        tag("p", typed(doubt.sentence), class_="sentence"),
        _places(first.stages, place),
        _alike(first, others, place),
        tag("p", typed(doubt.remedy), class_="remedy"),
        class_="blocking" if doubt.blocking else "",
        id=f"doubt-{number}" if number else False,
    )


def _places(names: Sequence[str], place: str) -> Markup:
    if not names:
        return Markup()
    noun = f"{place.capitalize()}{'s' if len(names) > 1 else ''} " if place else ""
    return tag("p", f"{noun}{', '.join(few(names))}", class_="where")


def _alike(first: Case, cases: Sequence[Case], place: str) -> Markup:
    """The same doubt with the numbers of other places: in a line where they are brief, else folded away."""
    if not cases:
        return Markup()
    if all(case.brief for case in cases) and len(cases) <= _BRIEF_MAX:
        return tag("p", unbroken(f"Alike in {'; '.join(told_of(first, cases))}"), class_="where")
    items = [
        tag("li", tag("b", ", ".join(few(case.stages))), " ", unbroken(case.brief or case.sentence))
        for case in cases[:_LISTED_MAX]
    ]
    items += [tag("li", f"and {len(cases) - len(items):,} more")] if len(cases) > len(items) else []
    more = sum(len(case.stages) for case in cases)
    return tag(
        "details",
        tag("summary", f"Alike in {counted(more, f'more {place}' if place else 'more place')}"),
        tag("ul", *items),
    )


def key_figures(summary: Summary) -> Markup:
    """A row of large numbers."""
    return tag("dl", *(_figure(figure) for figure in figures(summary)), class_="figures")


def _figure(figure: Figure) -> Markup:
    unit = tag("span", figure.unit, class_="unit") if figure.unit else Markup()
    told = tag("s", figure.value) if figure.against else figure.value
    value = tag("dd", told, " " if figure.unit else "", unit, class_="value")
    why = tag("dd", f"✗ does not stand: {figure.against}", class_="note bad") if figure.against else Markup()
    falls = "falls" if figure.against else False
    return tag("div", tag("dt", figure.label), value, tag("dd", figure.note, class_="note"), why, class_=falls)


def server(summary: Summary) -> Markup:
    """What an agent did, cold starts and the server's side of each stage, in a line each."""
    items = [
        tag("li", unbroken(line)) for line in (*agent_lines(summary), *cold_lines(summary), *server_lines(summary))
    ]
    return tag("details", tag("summary", "In numbers, by stage"), tag("ul", *items)) if items else Markup()


def circumstances(about: About) -> Markup:
    """The machine, the plan."""
    facts = {"withstand": about.version, "engine": about.engine, **about.machine}
    known = {name: fact for name, fact in facts.items() if fact}
    return joined(
        tag("div", tag("h3", "Machine"), _tree(known), class_="column"),
        tag("div", tag("h3", "Plan"), _tree(about.plan), class_="column"),
    )


def _tree(value: Any) -> Markup:
    """A nested plan as nested lists; what is not set is left out."""
    if isinstance(value, Mapping):
        rows = [(str(key), item) for key, item in value.items() if item not in (None, {}, [], "", ())]
        return tag("dl", *(joined(tag("dt", key), tag("dd", _tree(item))) for key, item in rows), class_="tree")
    if isinstance(value, list | tuple):
        if any(isinstance(item, Mapping) for item in value):
            return joined(*(_branch(place, item) for place, item in enumerate(value)))
        return joined(", ".join(str(item) for item in value))
    return joined(str(value).lower() if isinstance(value, bool) else str(value))


def _branch(place: int, item: Any) -> Markup:
    name = item.get("name") if isinstance(item, Mapping) else None
    return tag("details", tag("summary", str(name or f"[{place}]")), _tree(item))


def definitions() -> Markup:
    """Those that a reader of this page needs, in the catalogue's words."""
    metrics = [CATALOGUE[key] for key in _DEFINED]
    return tag("dl", *(joined(tag("dt", m.title), tag("dd", m.definition.replace("`", ""))) for m in metrics))
