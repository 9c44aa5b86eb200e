"""Programs of ours that are started under a name: as a verb of the command line, or as a service of a stack."""

from collections.abc import Mapping

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "selftest": ("withstand.testing.selftest",),
    "gateway": ("withstand.huge_pages", "withstand.gateway"),
    "agent": ("withstand.agent",),
    "truth-server": ("withstand.testing.truth",),
}
"""Name → what ``python -m`` is to run; it knows its options."""


def command_of(name: str, python: str) -> tuple[str, ...]:
    """How a command line of a program begins; its options follow."""
    return (python, "-P", "-m", *PROGRAMS[name])
