"""The CPU packages' counters: their turns, their parts, and files that only root may read."""

from pathlib import Path

import pytest

from withstand.record import Seen
from withstand.watch.rapl import Rapl

RANGE = 262_143_328_850


def package(root: Path, folder: str, name: str, microjoules: int | None, most: int | None = RANGE) -> Path:
    (root / folder).mkdir(parents=True)
    (root / folder / "name").write_text(f"{name}\n")
    if most is not None:
        (root / folder / "max_energy_range_uj").write_text(f"{most}\n")
    counter = root / folder / "energy_uj"
    if microjoules is not None:
        counter.write_text(f"{microjoules}\n")
    return counter


def joules(rapl: Rapl) -> float:
    return rapl.values()[Seen.CPU_JOULES]


def test_two_packages_are_added_and_their_parts_are_not(tmp_path: Path) -> None:
    first = package(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    second = package(tmp_path, "intel-rapl:1", "package-1", 9_000_000)
    part = package(tmp_path, "intel-rapl:0:0", "dram", 0)
    platform = package(tmp_path, "intel-rapl:2", "psys", 0)
    rapl = Rapl(tmp_path)
    assert joules(rapl) == 0
    for counter, value in ((first, 3_000_000), (second, 10_000_000), (part, 5_000_000), (platform, 70_000_000)):
        counter.write_text(str(value))
    assert joules(rapl) == pytest.approx(3)


def test_a_counter_that_has_turned_goes_on(tmp_path: Path) -> None:
    counter = package(tmp_path, "intel-rapl:0", "package-0", RANGE - 500_000)
    rapl = Rapl(tmp_path)
    counter.write_text("1500000")
    assert joules(rapl) == pytest.approx(2)
    counter.write_text("2500000")
    assert joules(rapl) == pytest.approx(3)


def test_one_that_turns_at_nobody_knows_what_tells_nothing(tmp_path: Path) -> None:
    counter = package(tmp_path, "intel-rapl:0", "package-0", 5_000_000, most=None)
    rapl = Rapl(tmp_path)
    counter.write_text("6000000")
    assert joules(rapl) == pytest.approx(1)
    counter.write_text("1000000")
    assert rapl.values() == {}


def test_a_part_would_pass_for_the_whole(tmp_path: Path) -> None:
    package(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    package(tmp_path, "intel-rapl:1", "package-1", None)
    assert Rapl(tmp_path).values() == {}


def test_a_system_without_any(tmp_path: Path) -> None:
    assert Rapl(tmp_path / "none").values() == {}
