"""Whatever reads YAML finds in an export the texts that were put into it: PyYAML, and Go's, with more numbers."""

import re

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from withstand.stack.exports.yaml import document, documents

NO_TEXT = re.compile(
    r"""
    |~|null|true|false|y|n|yes|no|on|off|=|<<                       # YAML 1.1 and 1.2
    |[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-f_]+|[0-9][0-9_]*)           # whole numbers
    |[-+]?(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)(e[-+]?[0-9_]+)?       # others
    |[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?                   # hours and minutes
    |[-+]?\.?(inf|infinity|nan)
    |[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?                     # days
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What some reader takes for a number, a truth, nothing or a day where it stands plain."""
ODD = (
    *("1e6", "y", "n", "N", "1234e56", "0o17", ".5e3", "1_0", "0b11", "-0x1F", "+1", "12:30:45", "2024-01-01", "", "~"),
    *("Yes", "OFF", "nUll", ".inf", "-.INF", ".NaN", "inf", "=", "<<", "---", "...", "# a", "x ", " x", "a: b", "- a"),
    *("\n", "a\nb", "a\tb", "\u2028a", "a\nb\u2028c\n", "\x85", "a\x85\nb", "\ufeff", "\r\n", "\x7f", "\U0001f600"),
)
TEXTS = st.one_of(
    st.sampled_from(ODD),
    st.from_regex(NO_TEXT, fullmatch=True),
    st.text("0123456789.eE+-_:xob", max_size=9),
    st.text("ab \n\t'\"#:-?|>%@`{}[],&*!\u2028\x85", max_size=30),
    st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("\n\t\r\x00"), max_size=200),
)
TREES = st.dictionaries(TEXTS, TEXTS | st.lists(TEXTS, max_size=3) | st.dictionaries(TEXTS, TEXTS, max_size=3))


@given(TREES)
@example({each: each for each in ODD})
def test_texts_come_out_as_they_went_in(tree: dict[str, object]) -> None:
    text = document(tree)
    assert yaml.safe_load(text) == yaml.load(text, Loader=yaml.BaseLoader) == tree
    assert list(yaml.safe_load_all(documents([tree, tree]))) == [tree, tree]


@given(TREES)
@example({each: each for each in ODD})
def test_nothing_that_some_reader_takes_for_a_number_stands_plain(tree: dict[str, object]) -> None:
    for event in yaml.parse(document(tree)):
        if isinstance(event, yaml.ScalarEvent) and event.style is None:
            assert not NO_TEXT.fullmatch(event.value)


@given(TREES)
def test_no_line_ends_where_only_some_readers_see_it(tree: dict[str, object]) -> None:
    assert not re.search("[\x85\u2028\u2029]", document(tree))


@pytest.mark.parametrize("value", [1, 1.5, True, None])
def test_what_is_no_text_stays_none(value: object) -> None:
    assert yaml.safe_load(document({"a": value})) == {"a": value}
