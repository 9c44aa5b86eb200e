"""What a machine has left, read from files that tests can write."""

from pathlib import Path

import pytest

from withstand.errors import EngineError
from withstand.stack import machine


@pytest.fixture
def fake_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(machine, "CPUS", tmp_path)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    return tmp_path


def test_a_machine_that_tells_nothing_refuses_nothing(fake_machine: Path) -> None:
    assert machine.available_memory_bytes() is None
    machine.require_memory(10**15, "The engine")


def test_the_smaller_of_machine_and_container_counts(fake_machine: Path) -> None:
    (fake_machine / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 4000000 kB\n")
    assert machine.available_memory_bytes() == 4_096_000_000
    (fake_machine / "memory.max").write_text("max\n")
    (fake_machine / "memory.current").write_text("1\n")
    assert machine.available_memory_bytes() == 4_096_000_000
    (fake_machine / "memory.max").write_text("2000000000\n")
    (fake_machine / "memory.current").write_text("1500000000\n")
    assert machine.available_memory_bytes() == 500_000_000


def test_too_little_memory_is_said_with_both_figures(fake_machine: Path) -> None:
    (fake_machine / "meminfo").write_text("MemAvailable: 1000000 kB\n")
    with pytest.raises(EngineError, match=r"The engine needs 1\.5 GB of memory and 1\.0 GB are available; close"):
        machine.require_memory(1_500_000_000, "The engine")


def test_too_little_disk_is_said(tmp_path: Path) -> None:
    machine.require_disk(tmp_path, 1, "make room")
    with pytest.raises(EngineError, match=r"MB of free disk and has \d+ MB; make room\.$"):
        machine.require_disk(tmp_path, 10**18, "make room")


def test_cores_are_physical_and_within_the_containers_share(fake_machine: Path) -> None:
    assert machine.usable_cores() == 4
    for cpu in range(4):
        topology = fake_machine / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{cpu % 2},{cpu % 2 + 2}\n")
    assert machine.usable_cores() == 2
    (fake_machine / "cpu.max").write_text("150000 100000\n")
    assert machine.usable_cores() == 1
    (fake_machine / "cpu.max").write_text("50000 100000\n")
    assert machine.usable_cores() == 1
    (fake_machine / "cpu.max").write_text("max 100000\n")
    assert machine.usable_cores() == 2
