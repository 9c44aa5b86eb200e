"""Columns that fit a terminal, or stay away whole."""

from hypothesis import given
from hypothesis import strategies as st

from withstand.cli.columns import Column, lines_of

WORDS = st.text("abc\u4e2d.:0", min_size=1, max_size=12)


@st.composite
def columns(draw: st.DrawFn) -> list[Column]:
    count = draw(st.integers(1, 4))
    cells = st.lists(WORDS, min_size=count, max_size=count).map(tuple)
    told = draw(st.lists(st.tuples(WORDS, cells, st.booleans(), st.integers(0, 9)), min_size=1, max_size=6))
    return [Column(*each) for each in told]


@given(columns(), st.none() | st.integers(1, 60))
def test_no_cell_is_ever_cut(told: list[Column], width: int | None) -> None:
    heading, *lines = lines_of(told, width) or [""]
    for column in told:
        if column.spare == 0 or width is None:
            assert column.heading in heading
            assert all(cell in line for cell, line in zip(column.cells, lines, strict=True))


def test_what_can_be_spared_most_stays_away_first() -> None:
    told = [Column("name", ("a", "b")), Column("age", ("1", "22"), right=True, spare=1), Column("at", ("x:1", "y:1"))]
    told.append(Column("empty", ("", "")))
    assert lines_of(told, None) == ["name  age  at", "a       1  x:1", "b      22  y:1"]
    assert lines_of(told, 13) == ["name  at", "a     x:1", "b     y:1"]
    assert lines_of(told, 14) == lines_of(told, None)
    assert lines_of(told, 1) == lines_of(told, 13)
