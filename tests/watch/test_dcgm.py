"""What DCGM's exporter says of GPUs: one node or several, whole GPUs and parts of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.record import Seen
from withstand.watch.dcgm import read_gpus

LABELS = 'gpu="{gpu}",UUID="GPU-{gpu}",device="nvidia{gpu}",modelName="NVIDIA H100 80GB HBM3"{more}'


def line(name: str, value: float, gpu: int = 0, more: str = ',Hostname="node-a"') -> str:
    return f"DCGM_FI_DEV_{name}{{{LABELS.format(gpu=gpu, more=more)}}} {value}\n"


def test_units_are_watts_joules_and_shares() -> None:
    text = "# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).\n# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n"
    text += line("POWER_USAGE", 312.5) + line("TOTAL_ENERGY_CONSUMPTION", 5_000_000) + line("GPU_UTIL", 87)
    text += line("FB_USED", 60_000) + line("FB_FREE", 20_000) + line("SM_CLOCK", 1980)
    assert read_gpus(text) == {
        "node-a/gpu0": {
            Seen.GPU_WATTS: 312.5,
            Seen.GPU_JOULES: pytest.approx(5000),
            Seen.GPU_SHARE: pytest.approx(0.87),
            Seen.GPU_MEMORY_SHARE: pytest.approx(0.75),
        }
    }


def test_nodes_and_gpus_are_told_apart() -> None:
    text = line("POWER_USAGE", 1) + line("POWER_USAGE", 2, 1) + line("POWER_USAGE", 3, more=',Hostname="node-b"')
    assert read_gpus(text + line("POWER_USAGE", 4, more="")) == {
        "node-a/gpu0": {Seen.GPU_WATTS: 1},
        "node-a/gpu1": {Seen.GPU_WATTS: 2},
        "node-b/gpu0": {Seen.GPU_WATTS: 3},
        "gpu0": {Seen.GPU_WATTS: 4},
    }


def test_parts_of_a_gpu_are_one_gpu() -> None:
    parts = [line("POWER_USAGE", 400, more=f',GPU_I_ID="{part}",GPU_I_PROFILE="1g.10gb"') for part in range(7)]
    assert read_gpus("".join(parts)) == {"gpu0": {Seen.GPU_WATTS: 400}}


def test_what_is_not_known_is_left_out() -> None:
    text = line("POWER_USAGE", float("nan")) + "DCGM_FI_DEV_POWER_USAGE 5\n" + line("GPU_UTIL", -1)
    assert read_gpus(text) == {}


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    read_gpus(text)
    read_gpus("DCGM_FI_DEV_POWER_USAGE{gpu=" + text)
