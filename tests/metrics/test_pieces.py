"""Pieces of numbers, one after another: how many of each are above a limit, wherever they lie."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from withstand.metrics import pieces as module
from withstand.metrics.pieces import Pieces
from withstand.runs import Shelf

PIECES = st.lists(st.lists(st.sampled_from((0, 1, 7, 2**31, 2**33)), max_size=6), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(first=PIECES, second=PIECES, run_length=st.integers(1, 9), limits=st.lists(st.floats(-1, 2**34), max_size=3))
def test_what_is_above_is_counted_piece_by_piece(
    tmp_path: Path, first: list[list[int]], second: list[list[int]], run_length: int, limits: list[float]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_RUN_LENGTH", run_length)
        pieces = Pieces()
        for place, part in enumerate((first, second)):
            other = Pieces(Shelf(tmp_path, str(place)).keep)
            for piece in part:
                other.add(piece)
            pieces.merge(other)
        whole = [*first, *second]
        counted = pieces.above([len(piece) for piece in whole], limits)
    assert [list(counts) for counts in counted] == [
        [sum(v > limit for v in piece) for piece in whole] for limit in limits
    ]
