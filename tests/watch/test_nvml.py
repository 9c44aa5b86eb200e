"""NVIDIA's library, played by one that the C compiler makes: counters, GPUs without one, and no library at all."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from withstand.watch.nvml import Nvml, opened

PLAYED = """
static int lost;
int nvmlInit_v2(void) { return INIT; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
  *handle = (char *)&lost + index;
  return index == 2 ? 15 : 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *millijoules) {
  if (handle != (void *)&lost) return 3;
  *millijoules = 5000000000000ULL;
  return 0;
}
"""


def library(folder: Path, init: int) -> ctypes.CDLL:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source, built = folder / "nvml.c", folder / "nvml.so"
    source.write_text(PLAYED)
    subprocess.run([compiler, f"-DINIT={init}", "-shared", "-fPIC", "-o", str(built), str(source)], check=True)
    return ctypes.CDLL(str(built))


def test_counters_are_joules_and_who_has_none_is_left_out(tmp_path: Path) -> None:
    assert Nvml(library(tmp_path, init=0)).joules() == {"gpu0": pytest.approx(5e9)}


def test_a_library_that_finds_no_driver_knows_no_gpu(tmp_path: Path) -> None:
    assert Nvml(library(tmp_path, init=9)).joules() == {}


def test_without_a_library_there_is_no_gpu() -> None:
    assert Nvml(None).joules() == {}


def test_what_is_here_is_told_or_not() -> None:
    assert all(joules >= 0 for joules in opened().joules().values())
