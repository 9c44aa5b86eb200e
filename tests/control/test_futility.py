"""A load that will hardly be known is not held to its end; one that may be, is."""

import pytest

from withstand.control.futility import is_futile
from withstand.control.probe import Standing
from withstand.control.share import Share
from withstand.spec import promise_of
from withstand.testing.queues import Queue, fixed, probed

P95 = (promise_of("ttft:p95:400"),)


@pytest.mark.parametrize(
    ("broken", "of", "part", "futile"),
    [
        (20, 400, 0.6, True),  # 5 % of them, which is the limit itself
        (20, 400, 0.3, False),  # too early to foresee anything
        (5, 100, 0.6, False),  # so few that they could not tell even if none had broken it
        (10, 400, 0.6, False),  # it may yet hold
        (32, 400, 0.6, False),  # it may yet break
    ],
)
def test_only_what_can_hardly_be_known_any_more_is_given_up(broken: int, of: int, part: float, futile: bool) -> None:
    assert is_futile((Share(broken, of),), P95, part) is futile


def test_one_promise_that_may_yet_break_is_worth_the_time() -> None:
    both = (*P95, promise_of("success:98%"))
    assert is_futile((Share(20, 400), Share(8, 400)), both, 0.6)
    assert not is_futile((Share(20, 400), Share(14, 400)), both, 0.6)
    assert not is_futile((Share(20, 400), None), both, 0.6)


def test_a_load_at_the_limit_is_left_before_its_time_is_over() -> None:
    """Of M/D/1 at 6.1 requests a second five in a hundred wait longer; most such probes end between half and all."""
    found = [probed(Queue(1, fixed(0.1, 0.001)), P95[0], 6.1, seed, until_s=600.0) for seed in range(6)]
    early = [after_s for look, after_s in found if look.standing is Standing.OPEN and after_s < 600]
    assert len(early) >= 2
    assert min(early) >= 300
