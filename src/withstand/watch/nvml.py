"""The energy that this machine's GPUs have taken, by NVIDIA's library (NVML): nvidia-smi does not tell it.

Millijoules since the driver was loaded, on GPUs from Volta on. Indexes are those of nvidia-smi.
"""

import ctypes

_LIBRARY = "libnvidia-ml.so.1"
_GOOD = 0
_J = 1e-3


class Nvml:
    """Opened once. ``library`` is NVIDIA's, with the C functions as attributes; None = there is none."""

    def __init__(self, library: ctypes.CDLL | None) -> None:
        self._library = library if library is not None and library.nvmlInit_v2() == _GOOD else None

    def joules(self) -> dict[str, float]:
        """``gpu0`` → its counter; a GPU that does not tell is left out."""
        told = {f"gpu{index}": self._joules_of(index) for index in range(self._count())}
        return {name: joules for name, joules in told.items() if joules is not None}

    def _count(self) -> int:
        count = ctypes.c_uint()
        if self._library is None or self._library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != _GOOD:
            return 0
        return count.value

    def _joules_of(self, index: int) -> float | None:
        assert self._library is not None
        handle, millijoules = ctypes.c_void_p(), ctypes.c_ulonglong()
        if self._library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)) != _GOOD:
            return None
        if self._library.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(millijoules)) != _GOOD:
            return None
        return millijoules.value * _J


def opened() -> Nvml:
    """NVIDIA's library, or one that knows of no GPU."""
    try:
        return Nvml(ctypes.CDLL(_LIBRARY))
    except OSError:
        return Nvml(None)
