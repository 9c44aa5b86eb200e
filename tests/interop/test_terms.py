"""The names of other tools' metrics: defined once, documented, and never one of ours."""

from pathlib import Path

import pytest

from withstand.interop.terms import TERMS, known, terms_markdown, unit_of
from withstand.interop.values import is_placeholder, number, split_unit, text, whole
from withstand.metrics.catalogue import CATALOGUE

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"


def test_no_name_has_two_definitions() -> None:
    assert not TERMS.keys() & CATALOGUE.keys()
    assert all(unit_of(name) for name in [*TERMS, *CATALOGUE])
    assert not known("something new")


def test_the_documentation_has_them_all() -> None:
    assert terms_markdown() in PAGE.read_text("utf-8")


@pytest.mark.parametrize(
    ("cell", "value"),
    [("1,915.41", 1915.41), ("12", 12.0), (" -3.5 ", -3.5), ("1e3", 1000.0), (".5", 0.5), ("5.", 5.0), ("550", 550.0),
     ("1,2", None), ("12..5", None), ("1.234,5", None), ("", None), ("e5", None), ("0x10", None), ("1_000", None),
     ("nan", None), ("inf", None), (True, None), (None, None), (float("nan"), None), (10**400, None), ("5ms", None)],
)  # fmt: skip
def test_a_number_is_one_wholly_or_not_at_all(cell: object, value: float | None) -> None:
    assert number(cell) == value


def test_units_words_counts_and_blanks() -> None:
    assert split_unit("406ms") == (406.0, "ms")
    assert split_unit("100 %") == (100.0, "%")
    assert split_unit("22xxx ms") is None
    assert (whole(5.0), whole(5.5), whole(-1), whole("7")) == (5, None, None, 7)
    assert (text("none"), text("None"), text(" a "), text("")) == ("none", None, "a", None)
    assert all(is_placeholder(blank) for blank in ("xxx", "xxx.xx", "...", "N", "?", "<value>"))
    assert not any(is_placeholder(value) for value in ("12", "max", "N/A", "-", "", 5))
