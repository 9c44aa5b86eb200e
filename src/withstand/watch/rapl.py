"""The energy of the CPU packages, by the kernel's powercap files (RAPL), which most systems let only root read.

A package's counter is in microjoules and begins anew after ``max_energy_range_uj``: within a minute or so under load.
Here it only grows, and begins at 0 with the first look.
"""

from pathlib import Path

from withstand.record import Seen

_ROOT = Path("/sys/class/powercap")
_J = 1e-6


class Rapl:
    """Remembers each package's last reading."""

    def __init__(self, root: Path = _ROOT) -> None:
        self._packages = [_Package(folder) for folder in sorted(root.glob("*:*")) if _is_package(folder)]

    def values(self) -> dict[Seen, float]:
        """Of all packages together; nothing where one cannot be read, now or ever: a part would pass for the whole."""
        joules = [package.joules() for package in self._packages]
        known = [j for j in joules if j is not None]
        return {Seen.CPU_JOULES: sum(known)} if known and len(known) == len(joules) else {}


class _Package:
    """One counter, with its turns taken out."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "energy_uj"
        self._range = _number(folder / "max_energy_range_uj")
        self._before = _number(self._file)
        self._total = 0

    def joules(self) -> float | None:
        """Since the first look; None = it cannot be told any more."""
        now, before = _number(self._file), self._before
        if now is None or before is None:
            return None
        if now < before and not self._range:
            return None
        self._total += now - before if now >= before else now - before + (self._range or 0)
        self._before = now
        return self._total * _J


def _is_package(folder: Path) -> bool:
    """Not a part of one (``intel-rapl:0:0``), and not the whole platform, which has the packages in it."""
    try:
        return (folder / "name").read_text("ascii", "replace").startswith("package")
    except OSError:
        return False


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text("ascii", "replace"))
    except (OSError, ValueError):  # not readable by us, or not there
        return None
