from benchmarks.load.claims import Cell, Claim, all_hold, as_table


def cell(*claims: Claim) -> Cell:
    return Cell("a cell", list(claims), ["quiet"])


def test_a_limit_is_kept_from_below_or_from_above() -> None:
    assert Claim("error", 0.1, "ms", 0.1).holds
    assert Claim("error", 0.11, "ms", 0.1).holds is False
    assert Claim("rate", 8_000, "", 8_000, at_least=True).holds
    assert Claim("rate", 7_999, "", 8_000, at_least=True).holds is False
    assert Claim("for information", 7).holds is None


def test_what_could_not_be_measured_does_not_hold_and_is_no_number() -> None:
    unknown = cell(Claim("error", float("nan"), "ms", 0.1))
    assert not all_hold([unknown])
    assert "| error | ≤ 0.1 ms | not measured: run longer |  |" in as_table("name", [unknown])


def test_rounds_that_found_nothing_do_not_hide_the_others() -> None:
    rounds = [cell(Claim("error", got, "ms", 0.1)) for got in (float("nan"), 0.05, 0.07)]
    assert all_hold(rounds)
    assert "0.06 ms (0.05 … 0.07)" in as_table("name", rounds)


def test_rounds_are_judged_by_their_median_and_show_their_range() -> None:
    rounds = [cell(Claim("error", got, "ms", 0.1)) for got in (0.05, 0.2, 0.06)]
    assert all_hold(rounds)
    assert "| error | ≤ 0.1 ms | 0.06 ms (0.05 … 0.2) | yes |" in as_table("name", rounds)


def test_the_table_says_what_does_not_hold_and_under_what_conditions() -> None:
    table = as_table("tokens", [cell(Claim("lost", 3, "", 0), Claim("late p99", 1234.5, "ms"))])
    assert table.startswith("### tokens: a cell\n")
    assert "| lost | ≤ 0 | 3 | **no** |" in table
    assert "| late p99 |  | 1,234 ms |  |" in table
    assert "\n- quiet\n" in table
