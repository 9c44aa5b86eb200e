"""The order of the blocks: every drift up to the second degree is the same for both sides."""

import pytest

from withstand.control.interleaving import blocks_of
from withstand.errors import UsageError


def test_it_begins_with_a_b_b_a_and_names_its_folders() -> None:
    assert [block.name for block in blocks_of(4)] == ["a-01", "b-01", "b-02", "a-02", "b-03", "a-03", "a-04", "b-04"]


@pytest.mark.parametrize(("pairs", "degree"), [(4, 2), (6, 1), (8, 2), (10, 1), (12, 2)])
def test_drift_is_the_same_for_both_sides(pairs: int, degree: int) -> None:
    for power in range(1, degree + 1):
        sums = [sum(b.place**power for b in blocks_of(pairs) if b.side == side) for side in (0, 1)]
        assert sums[0] == sums[1]


@pytest.mark.parametrize("pairs", [0, 2, 5, 10_002, 10**12])
def test_what_cannot_cancel_a_drift_is_refused(pairs: int) -> None:
    with pytest.raises(UsageError, match="--blocks"):
        blocks_of(pairs)
