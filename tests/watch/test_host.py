"""What /proc and nvidia-smi say, and what they may leave out."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.record import Seen
from withstand.watch.host import Machine, cpu_share, cpu_times, gpu_text, gpus, memory


def test_busy_is_what_is_neither_idle_nor_waiting_for_a_disk() -> None:
    before = cpu_times("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 1 1 1 1\n")
    after = cpu_times("cpu  160 0 70 810 60 0 0 0 0 0\n")
    assert (before, after) == ((150, 1000), (230, 1100))
    assert cpu_share(before, after) == {Seen.CPU_SHARE: 0.8}


@pytest.mark.parametrize("stat", ["", "cpu", "cpu  1 2 3", "intr 5 5 5 5 5"])
def test_another_system_tells_nothing(stat: str) -> None:
    assert cpu_times(stat) is None
    assert cpu_share(None, (1, 2)) == {}


@given(st.tuples(st.integers(0, 9), st.integers(0, 9)), st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_a_share_is_one_whatever_the_ticks_do(before: tuple[int, int], after: tuple[int, int]) -> None:
    assert all(0 <= share <= 1 for share in cpu_share(before, after).values())


def test_memory_that_is_left() -> None:
    assert memory("MemTotal: 5 kB\nMemAvailable:   2 kB\n") == {Seen.MEMORY_AVAILABLE_BYTES: 2048}
    assert memory("MemTotal: 5 kB\n") == {}


def test_cards_and_what_they_do_not_tell() -> None:
    text = "0, 0, 0, 143771, 106.18\n1, 87, 40000, 80000, [N/A]\n2, [N/A], [N/A], [N/A], [N/A]\nNo devices were found\n"
    assert gpus(text) == {
        "gpu0": {Seen.GPU_SHARE: 0, Seen.GPU_MEMORY_SHARE: 0, Seen.GPU_WATTS: 106.18},
        "gpu1": {Seen.GPU_SHARE: 0.87, Seen.GPU_MEMORY_SHARE: 0.5},
    }


@given(st.text("0123456789, .[]N/A-einfa\n"))
def test_no_text_of_cards_breaks_it(text: str) -> None:
    gpus(text)


def test_a_program_that_fails_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    fake.write_text("#!/bin/sh\necho '0, 1, 2, 3, 4'\nexit ${CODE:-0}\n")
    fake.chmod(0o755)
    assert list(gpus(gpu_text())) == ["gpu0"]
    monkeypatch.setenv("CODE", "9")
    assert gpu_text() == ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_this_machine_is_seen() -> None:
    assert Seen.MEMORY_AVAILABLE_BYTES in Machine().values()
