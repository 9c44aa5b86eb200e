"""The comparison page's prose: what is compared, what can be concluded, the doubts, the decisions, the conditions."""

from collections.abc import Iterator, Sequence

import msgspec

from withstand.compare.shape import Comparison, Decision, Gate, Group, Objection, Side
from withstand.metrics.catalogue import CATALOGUE
from withstand.report import comparison_words as words
from withstand.report.comparison_tables import Context, marks, noted, swatch
from withstand.report.comparison_words import Notes
from withstand.report.html_parts import doubt_item, doubts_section
from withstand.report.html_tables import scrollable
from withstand.report.markup import Markup, joined, tag, typed, unbroken
from withstand.report.numbers import counted, utc
from withstand.report.standing import few

_GROUPS_MAX = 60

_WORDS = {
    "Fastest": "The side with the best value, whatever can be concluded.",
    "Faster by": "(slower - faster) / slower, from unrounded values; of rates (higher - lower) / higher.",
    "Against": "(side - baseline) / baseline, with its 95 % interval.",
    "Faster, slower": "The difference is larger than what chance makes, at 5 % over all comparisons of this page.",
    "No difference shown": "The data is good enough to compare, and what differs may be chance.",
    "Negligible": "The difference is shown, and too small to matter.",
    "Cannot be concluded": "The numbers stand there, and nothing follows from them; the note says why.",
}


def masthead(comparison: Comparison, now: str) -> Markup:
    """What is compared, and the one sentence that one may take away."""
    shared, own = words.who_is_who(comparison)
    when = utc(now)
    place = " · ".join([*shared, when])
    return tag(
        "header",
        tag("p", "Comparison", class_="eyebrow"),
        tag("h1", words.title(comparison)),
        tag("p", typed(comparison.headline), class_=f"verdict {words.level(comparison)}"),
        tag("p", words.FORCED, class_="forced", role="note") if comparison.forced else Markup(),
        _gate(comparison.gate),
        tag("ul", *(_side(place, *one) for place, one in enumerate(own)), class_="who-is-who"),
        tag("p", place, class_="place"),
    )


def _gate(gate: Gate | None) -> Markup:
    return tag("p", gate.sentence, class_="forced" if gate.failed else "lead", role="note") if gate else Markup()


def _side(place: int, label: str, facts: Sequence[str]) -> Markup:
    baseline = tag("em", " baseline") if place == 0 else Markup()
    told = tag("span", " · ".join(facts), class_="note") if facts else Markup()
    return tag("li", swatch(place), tag("b", label), baseline, told)


def legend(sides: Sequence[Side]) -> Markup:
    """Whose colour is whose."""
    return tag("ul", *(tag("li", swatch(place), side.label) for place, side in enumerate(sides)), class_="legend")


def doubts(context: Context) -> Markup:
    """Each kind once, what was remarked on conditions, and how much could not be compared."""
    comparison = context.comparison
    items = [doubt_item(doubt, number=place) for place, doubt in enumerate(context.numbered.heard, start=1)]
    items += [_remark("Conditions", sentence, ", ".join(few(at))) for sentence, at in words.remarks(comparison).items()]
    if comparison.unmatched:
        items.append(_unmatched(comparison))
    return doubts_section(items) if items else Markup()


def _remark(kind: str, sentence: str, where: str) -> Markup:
    return tag(
        "li",
        tag("p", kind, class_="kind"),
        tag("p", sentence, class_="sentence"),
        tag("p", where, class_="where"),
    )


def _unmatched(comparison: Comparison) -> Markup:
    lost = comparison.unmatched
    told = few(words.unmatched(comparison), 40)
    return tag(
        "li",
        tag("p", "Not compared", class_="kind"),
        tag("p", f"{counted(len(lost), 'measurement')} without an equal on the other side.", class_="sentence"),
        tag(
            "details",
            tag("summary", "Which, and why"),
            tag("ul", *(tag("li", one) for one in told)),
            open=len(lost) <= 6,
        ),
    )


def decisions(context: Context, given: Sequence[Decision]) -> Markup:
    """What is best for which purpose; nothing at all where nobody decided."""
    if not given:
        return Markup()
    head = tag(
        "thead", tag("tr", *(tag("th", text, scope="col") for text in ("Best for", "Winner", "Evidence", "Doubt")))
    )
    context = msgspec.structs.replace(context, notes=Notes())
    rows = [_decision(context, one) for one in given]
    table = scrollable(tag("table", head, tag("tbody", *rows), class_="prose"), "Best for")
    body = tag("div", table, noted(context.notes), class_="body")
    return tag("section", tag("h2", "Best for"), body, id="decisions")


def _decision(context: Context, one: Decision) -> Markup:
    winner = tag("b", one.winner) if one.winner else tag("span", "nothing can be concluded", class_="unknown")
    return tag(
        "tr",
        tag("th", one.wins_for, scope="row"),
        tag("td", winner),
        tag("td", unbroken(one.evidence)),
        tag("td", *(_objection(context, against) for against in one.against)),
    )


def _objection(context: Context, against: Objection) -> Markup:
    notes = [against.note] if against.note and against.note not in context.common else []
    return joined(unbroken(against.remark), marks(context, against.doubts, notes), ". ")


def about_tables(context: Context) -> Markup:
    """What holds for every row, said once."""
    lack, cure = words.common_lack(context.comparison), words.common_cure(context.comparison)
    said = [lack] if lack else []
    said += [words.to_conclude_more(cure)] if cure else []
    said.append("A small number leads to a doubt; a hatched bar has one that forbids a verdict.")
    return tag("p", " ".join(said), class_="lead")


def conditions(comparison: Comparison) -> Markup:
    """What was equal, for each group what it has beyond that, and where the sides came from."""
    return joined(
        tag("div", tag("h3", "Equal on all sides"), _equal(comparison.groups), class_="column"),
        tag("div", tag("h3", "Sources"), tag("dl", *_sources(comparison.sides), class_="tree"), class_="column"),
    )


def _equal(groups: Sequence[Group]) -> Markup:
    shared = words.shared_conditions(groups)
    rows = [joined(tag("dt", name), tag("dd", text)) for name, text in shared.items()]
    for group in groups[:_GROUPS_MAX]:
        own = [f"{name} {text}" for name, text in group.conditions.items() if name not in shared]
        own += [work] if "answered" in (work := words.work(group)) else []
        rows += [joined(tag("dt", group.label), tag("dd", ", ".join(own)))] if own else []
    return tag("dl", *rows, class_="tree") if rows else tag("p", "The files tell of none.", class_="lead")


def _sources(sides: Sequence[Side]) -> Iterator[Markup]:
    for side in sides:
        yield joined(tag("dt", side.label), tag("dd", ", ".join(few(side.sources))))


def method(comparison: Comparison) -> Markup:
    """How it was compared, what the words mean, what the metrics are."""
    keys = dict.fromkeys(metric.metric.partition(".")[0] for metric in words.listed(comparison))
    metrics = {CATALOGUE[key].title: CATALOGUE[key].definition.replace("`", "") for key in keys if key in CATALOGUE}
    return joined(
        tag("p", comparison.method, class_="method"),
        _defined("What the words mean", _WORDS),
        _defined("What the metrics are", metrics),
    )


def _defined(title: str, definitions: dict[str, str]) -> Markup:
    terms = [joined(tag("dt", name), tag("dd", text)) for name, text in definitions.items()]
    return tag("details", tag("summary", title), tag("dl", *terms)) if terms else Markup()
