"""The comparison under load: its arithmetic, and who is asked for more."""

import pytest
from benchmarks.load.instrument import Truth
from benchmarks.load.peers import HEADS, TOKENS, Row, compare, errors, lateness_p99_ms
from benchmarks.peers.client import Client, Said, Spread
from benchmarks.peers.clients import chosen

MS = 1_000_000


def _truth(number: int) -> Truth:
    begin_ns = number * 100 * MS
    tokens_ns = [begin_ns + (50 + 20 * i) * MS for i in range(TOKENS)]
    return Truth(id=str(number), mark="", ok=True, arrival_ns=begin_ns, token_ns=tokens_ns, late_ns_max=0)


def test_an_error_is_what_was_said_less_what_was_true() -> None:
    said = Said(ttft_ms=Spread(51, 50, 60), itl_ms=Spread(mean=19.5))
    ttft, tpot, itl = errors(said, [_truth(0), _truth(1)])
    assert (ttft.mean, ttft.p50, ttft.p99) == pytest.approx((1, 0, 10))
    assert tpot == Spread()
    assert itl.mean == pytest.approx(-0.5)
    assert (itl.p50, itl.p99) == (None, None)


def test_lateness_counts_from_the_first_arrival_and_an_early_one_is_not_late() -> None:
    on_time = [k * 10 * MS for k in range(200)]
    assert lateness_p99_ms(on_time, 100) == 0
    assert (
        lateness_p99_ms([at_ns + (7 * MS if k >= 100 else -MS * (k > 0)) for k, at_ns in enumerate(on_time)], 100) == 7
    )


def _row(client: Client, level: int, share: float) -> Row:
    want_rps = level / TOKENS
    return Row(client=client.name, level=level, want_rps=want_rps, got_rps=share * want_rps)


def test_who_has_fallen_behind_is_not_asked_for_more(capsys: pytest.CaptureFixture[str]) -> None:
    shares = {"withstand": 1.0, "vllm": 0.5}
    compare(
        chosen(["withstand", "vllm"]), [1000, 2000], lambda client, level: [_row(client, level, shares[client.name])]
    )
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[:2] for line in lines[2:]] == [
        ["| withstand", "1,000"],
        ["| vllm", "1,000"],
        ["| withstand", "2,000"],
    ]
    assert all(line.count(" | ") == len(HEADS) - 1 for line in lines)


def test_a_client_without_an_answer_says_why() -> None:
    cells = Row(client="vllm", level=1000, want_rps=7.8, trouble="KeyError: 'x'").cells()
    assert "KeyError: 'x'" in cells
    assert len(cells) == len(HEADS)
