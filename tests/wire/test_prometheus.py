"""The text format: what was written is read, whatever it was; what is none says nothing and breaks nothing."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.wire.prometheus import Series, read_series

NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,20}", fullmatch=True)
LABEL_NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,10}", fullmatch=True)
LABELS = st.dictionaries(LABEL_NAMES, st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=4)
SERIES = st.builds(Series, NAMES, LABELS, st.floats(allow_nan=False))


def written(series: Series, timestamp: str = "") -> str:
    def escaped(text: str) -> str:
        return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")

    labels = ",".join(f'{name}="{escaped(value)}"' for name, value in series.labels.items())
    value = {math.inf: "+Inf", -math.inf: "-Inf"}.get(series.value, repr(series.value))
    return f"{series.name}{{{labels}}} {value}{timestamp}" if labels else f"{series.name} {value}{timestamp}"


@given(st.lists(SERIES, max_size=5), st.sampled_from(["", " 1395066363000", " -1"]))
def test_what_is_written_is_read(series: list[Series], timestamp: str) -> None:
    text = "# HELP a b\n# TYPE a histogram\n\n" + "\n".join(written(one, timestamp) for one in series)
    assert list(read_series(text)) == series


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    list(read_series(text))


@given(st.text('{}"\\,=+-.# \t\r\na1:_eEInfNa', max_size=60))
def test_no_text_like_it_breaks_it(text: str) -> None:
    assert all(isinstance(one.value, float) for one in read_series(text))


@pytest.mark.parametrize(
    "line",
    [
        "a",
        "a{",
        'a{b="c} 1',
        'a{b="c" d="e"} 1',
        "a{b=c} 1",
        "a{,} 1",
        "a{b} 1",
        "a 1 2 3",
        "a 1_000",
        "a one",
        "a \u0661",
        "1a 1",
        "# a 1",
        "a,b 1",
        "<html>",
        'a{b="' + "x" * 100_000,
        "a{" * 50_000,
        'a{b="c",' * 20_000,
    ],
)
def test_a_line_that_breaks_the_format_says_nothing(line: str) -> None:
    assert list(read_series(f"{line}\nlast 1")) == [Series("last", {}, 1.0)]


def test_a_histogram_is_its_series() -> None:
    text = """
# TYPE t_seconds histogram
t_seconds_bucket{le="0.5",} 2
t_seconds_bucket { le = "+Inf" , } 3
t_seconds_sum 1.5e0\r
t_seconds_count 3
"""
    assert [(one.name, dict(one.labels), one.value) for one in read_series(text)] == [
        ("t_seconds_bucket", {"le": "0.5"}, 2.0),
        ("t_seconds_bucket", {"le": "+Inf"}, 3.0),
        ("t_seconds_sum", {}, 1.5),
        ("t_seconds_count", {}, 3.0),
    ]


def test_only_what_is_wanted_is_read() -> None:
    assert [one.name for one in read_series("a 1\nb 2\nab 3", {"a", "ab"})] == ["a", "ab"]


def test_no_number_is_one_too() -> None:
    (one,) = read_series("a NaN")
    assert math.isnan(one.value)
