"""Every error that withstand raises on purpose.

::

    WithstandError              one sentence that names what is wrong and the cure
    ├── UsageError              exit 2: what was asked for cannot be understood
    │   ├── SpecError           a plan's field, with its path
    │   ├── DatasetError        a dataset's file or size
    │   └── FormatError         a result file of another tool that cannot be read
    └── MeasureError            exit 3: what was asked for could not be measured
        ├── TargetError         the endpoint does not answer as it must
        │   └── AwayError       it does not answer at all at present
        ├── EngineError         the embedded engine does not come up
        ├── ClientLimitError    this machine cannot carry the load asked
        └── StorageError        a result cannot be written or read

A failed request is none of these: it is a record with a status.
"""

from typing import ClassVar


class WithstandError(Exception):
    """The root; its text is shown to the user as it is."""

    exit_code: ClassVar[int] = 3


class UsageError(WithstandError):
    """The user asked for something that cannot be understood."""

    exit_code = 2


class SpecError(UsageError):
    """A field of the plan is wrong; the text holds its path."""


class DatasetError(UsageError):
    """A dataset is unknown, missing, malformed or too small."""


class FormatError(UsageError):
    """A file that holds no result, or none that is known."""


class MeasureError(WithstandError):
    """Understood, but it could not be measured."""


class TargetError(MeasureError):
    """The endpoint refuses, is not there, or does not speak the dialect."""


class AwayError(TargetError):
    """Nobody is there, or who is there cannot serve at present: a moment later it may be otherwise."""


class EngineError(MeasureError):
    """The embedded engine or its model cannot be had."""


class ClientLimitError(MeasureError):
    """This machine's limits (descriptors, ports, memory) are below the load asked."""


class StorageError(MeasureError):
    """A run folder cannot be written or read."""


def extra(name: str) -> str:
    """The cure where a part of withstand is not installed; no index has it, so it is installed from its checkout."""
    return f"install withstand's extra {name!r} (pip install '.[{name}]' in its checkout)"
