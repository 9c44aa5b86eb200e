from itertools import pairwise
from pathlib import Path

import pytest
from benchmarks.load.instrument import (
    AbsentError,
    Seen,
    Truth,
    at_share,
    compare,
    go_truth_server,
    marked,
    reference_client,
)
from hypothesis import given
from hypothesis import strategies as st

ns = st.integers(0, 10**12)
waits = st.lists(st.integers(0, 10**8), min_size=1, max_size=20)


def truth(number: int, token_ns: list[int], arrival_ns: int = 0) -> Truth:
    mark = marked(number)
    return Truth(id=f"id{number}", mark=mark, ok=True, arrival_ns=arrival_ns, token_ns=token_ns, late_ns_max=0)


def test_marks_differ_by_a_nanosecond_of_the_ttft_wanted() -> None:
    marks = [marked(number) for number in range(40_000)]
    assert len(set(marks)) == len(marks)
    assert marks[0] == "ttft=50.000000"
    assert marks[39_999] == "ttft=50.039999"


@given(ns, waits, st.integers(0, 10**7))
def test_a_client_that_is_always_equally_late_has_no_error_in_itl(start_ns: int, gaps: list[int], late_ns: int) -> None:
    token_ns = [start_ns + sum(gaps[:i]) for i in range(len(gaps) + 1)]
    errors = compare([Seen(marked(0), 0, [t + late_ns for t in token_ns])], [truth(0, token_ns)])
    assert errors.itl_ns == [0] * len(gaps)
    assert errors.delay_ns == [late_ns] * len(token_ns)
    assert errors.ttft_ns == [late_ns]


@given(waits)
def test_an_error_is_the_difference_of_two_gaps(lates: list[int]) -> None:
    token_ns = [i * 20_000_000 for i in range(len(lates))]
    seen_ns = [t + late for t, late in zip(token_ns, lates, strict=True)]
    errors = compare([Seen("id7", 0, seen_ns)], [truth(7, token_ns)])
    assert errors.itl_ns == sorted(abs((b - a) - 20_000_000) for a, b in pairwise(seen_ns))


def test_the_time_from_the_send_to_the_server_belongs_to_the_ttft_that_a_client_sees() -> None:
    errors = compare([Seen("id0", 100, [1_000])], [truth(0, [1_000], arrival_ns=130)])
    assert errors.ttft_ns == [30]


def test_gaps_beside_an_unsure_stamp_are_not_counted() -> None:
    token_ns = [0, 20, 40, 60]
    seen = Seen(marked(0), 0, [0, 40, 40, 60], unsure=[1])
    errors = compare([seen], [truth(0, token_ns)])
    assert errors.itl_ns == [0]
    assert errors.unsure_gaps == 2


def test_unknown_requests_and_other_numbers_of_tokens_are_no_match() -> None:
    errors = compare([Seen("id0", 0, [1]), Seen("id1", 0, [1, 2]), Seen("id9", 0, [1])], [truth(0, [1]), truth(1, [1])])
    assert (errors.matched, errors.unmatched) == (1, 2)


def test_a_share_lies_between_its_neighbours() -> None:
    assert at_share([10, 20, 30], 0.25) == 15
    assert at_share([10], 0.99) == 10
    assert at_share([], 0.5) != at_share([], 0.5)


def test_an_instrument_that_is_not_here_is_told_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WITHSTAND_SHARED", str(tmp_path))
    monkeypatch.delenv("WITHSTAND_TRUTH_BINARY", raising=False)
    with pytest.raises(AbsentError, match="WITHSTAND_TRUTH_BINARY"):
        go_truth_server()
    monkeypatch.setenv("WITHSTAND_REFCLIENT", str(tmp_path / "nothing"))
    with pytest.raises(AbsentError, match="is no program"):
        reference_client()


def test_a_binary_that_is_named_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WITHSTAND_TRUTH_BINARY", "/bin/sh")
    assert go_truth_server() == Path("/bin/sh")
