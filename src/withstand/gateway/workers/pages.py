"""Several workers' metrics as one page, in Prometheus' text form: pure.

Whatever a series is, what all workers have of it is the sum, but for what each of them sees whole.
"""

from collections.abc import Iterable, Sequence

_SEEN_WHOLE = (
    "engine_in_flight",
    "engine_load",
    "engine_polled_age_seconds",
    "engine_up",
    "engine_healthy",
    "engine_failing",
    "gateway_compiled",
)
_LASTS = frozenset(("counter", "histogram"))

_Series = dict[str, float]
_Families = dict[tuple[str, str, str], _Series]
"""(name, HELP line, TYPE line) → series → value."""


def together(own: str, others: Iterable[str]) -> str:
    """The sum; of what each sees whole, ``own``."""
    total = _read(own)
    for other in map(_read, others):
        for family, series in other.items():
            into = total.setdefault(family, {})
            for name, value in series.items():
                if not family[0].endswith(_SEEN_WHOLE):
                    into[name] = into.get(name, 0) + value
                else:
                    into.setdefault(name, value)
    return _written(total)


def lasting(pages: Sequence[str]) -> str:
    """What is left of workers that are gone: counters must not go back."""
    kept = _read(together(pages[0], pages[1:]))
    return _written({family: series for family, series in kept.items() if family[2].split()[-1] in _LASTS})


def _read(page: str) -> _Families:
    families: _Families = {}
    told, series = "", _Series()
    for line in page.splitlines():
        if line.startswith("# HELP "):
            told = line
        elif line.startswith("# TYPE "):
            series = families.setdefault((line.split()[2], told, line), {})
        else:
            name, _, value = line.rpartition(" ")
            series[name] = float(value)
    return families


def _written(families: _Families) -> str:
    lines = []
    for (_, told, kind), series in families.items():
        lines += [told, kind, *(f"{name} {_number(value)}" for name, value in series.items())]
    return "\n".join([*lines, ""])


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
