"""The page's part about a search for a limit: the sentence, its charts, the table of what was tried."""

from withstand.control.limit import Limit
from withstand.report.html_tables import scrollable
from withstand.report.limit import HEADINGS, promised, rows, sentence
from withstand.report.markup import Markup, joined, tag, unbroken

_LEGEND = (
    "Green: the load holds; red: it breaks a promise, or (triangle) its queue has no end; open: not known. Bars are "
    "95 % intervals; one that ends at its point is open there. Dotted: what is promised."
)
_SHADED = "The limit lies in the shaded part."


def limit_section(limit: Limit) -> Markup:
    """First on the page: it is what was asked."""
    body = [
        tag("p", unbroken(sentence(limit)), class_="found"),
        tag("p", unbroken(f"Promised: {promised(limit)}."), class_="lead"),
    ]
    if limit.probes:
        body += [_charts(limit), _table(limit)]
    return tag("section", tag("h2", "Limit"), tag("div", *body, class_="body"), id="limit")


def _charts(limit: Limit) -> Markup:
    """A pair for each promise: the share that breaks it, and the time that is promised."""
    pairs = [_pair(which, limit) for which in range(len(limit.promises))]
    is_bounded = limit.interval.low is not None or limit.interval.high is not None
    legend = f"{_LEGEND} {_SHADED}" if is_bounded else _LEGEND
    return joined(tag("p", legend, class_="lead"), tag("div", *pairs, class_="grid limits"))


def _pair(which: int, limit: Limit) -> Markup:
    promise = limit.promises[which]
    share = _figure("share", which, f"What breaks {promise}", "share of requests")
    return share if promise.limit is None else joined(share, _figure("time", which, str(promise), "ms"))


def _figure(kind: str, which: int, title: str, unit: str) -> Markup:
    plot = tag("div", class_="plot", data_chart="limit", data_kind=kind, data_promise=str(which))
    return tag("figure", tag("figcaption", unbroken(title), " ", tag("i", unit)), plot)


def _table(limit: Limit) -> Markup:
    head = tag("thead", tag("tr", *(tag("th", heading, scope="col") for heading in HEADINGS)))
    body = tag("tbody", *(_row(row) for row in rows(limit)))
    return scrollable(tag("table", head, body, class_="tried"), "Loads that were tried")


def _row(row: tuple[str, ...]) -> Markup:
    load, *cells = row
    return tag("tr", tag("th", load, scope="row"), *(tag("td", unbroken(cell)) for cell in cells))
