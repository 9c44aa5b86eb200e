"""Which of the GPUs that were seen serve, and so count. Pure.

GPUs that a named exporter tells of take the place of this machine's, which may be the same ones. Those of this machine
count only where the server is on it too. One that neither works nor holds memory serves nobody.
"""

from collections.abc import Iterable, Mapping, Sequence

from withstand.record import Sample, Seen

GPU_SEEN = frozenset({Seen.GPU_SHARE, Seen.GPU_MEMORY_SHARE, Seen.GPU_WATTS, Seen.GPU_JOULES})
_LOCAL = "gpu"
_HELD_SHARE = 0.05
"""An engine holds more memory than this; a driver that is merely loaded holds less."""


def serving(samples: Iterable[Sample], *, beside_server: bool) -> dict[str, list[Sample]]:
    """The looks at each GPU, by its name; several machines' may be among them."""
    found = _by_gpu(samples)
    if any(map(_is_remote, found)):
        return {name: looks for name, looks in found.items() if _is_remote(name)}
    return found if beside_server else {}


def _by_gpu(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        if sample.values.keys() & GPU_SEEN:
            found.setdefault(sample.source, []).append(sample)
    return found


def _is_remote(source: str) -> bool:
    return not (source.startswith(_LOCAL) and source.removeprefix(_LOCAL).isdecimal())


def in_use(gpus: Mapping[str, Sequence[Sample]]) -> list[str]:
    """Those that worked or held memory at any look; where nobody tells, a GPU is taken to be in use."""
    return [name for name, looks in gpus.items() if _is_in_use(looks)]


def _is_in_use(looks: Sequence[Sample]) -> bool:
    worked = [look.values[Seen.GPU_SHARE] for look in looks if Seen.GPU_SHARE in look.values]
    held = [look.values[Seen.GPU_MEMORY_SHARE] for look in looks if Seen.GPU_MEMORY_SHARE in look.values]
    return not (worked or held) or max(worked, default=0.0) > 0 or max(held, default=0.0) >= _HELD_SHARE
