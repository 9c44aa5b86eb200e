"""The page's account of the path, where ``run --doctor`` has examined it."""

from withstand.doctor.finding import Diagnosis, Finding
from withstand.report.diagnosis_text import CHAPTERS, MARKS, headline
from withstand.report.html_tables import scrollable
from withstand.report.markup import Markup, tag, unbroken

_TITLE = "The path"


def doctor_section(diagnosis: Diagnosis | None) -> Markup:
    """Every finding; nothing where there was no examination."""
    if diagnosis is None:
        return Markup()
    rows = [_row(finding) for finding in diagnosis.findings]
    head = tag("thead", tag("tr", *(tag("th", heading, scope="col") for heading in ("", "Asked", "Seen", "Cure"))))
    table = scrollable(tag("table", head, tag("tbody", *rows)), _TITLE)
    lead = tag("p", f"Examined before the load: {headline(diagnosis)}.", class_="lead")
    body = tag("div", lead, tag("details", tag("summary", "All findings"), table), class_="body")
    return tag("section", tag("h2", _TITLE), body, id="path")


def _row(finding: Finding) -> Markup:
    asked = f"{CHAPTERS.get(finding.chapter, finding.chapter)}: {finding.title}"
    return tag(
        "tr",
        tag("td", MARKS[finding.verdict], title=finding.verdict.value),
        tag("th", asked, scope="row"),
        tag("td", unbroken(finding.said)),
        tag("td", unbroken(finding.cure)),
    )
