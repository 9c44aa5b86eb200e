"""Where stacks keep what is theirs nothing can be written."""

from pathlib import Path

from withstand.errors import StorageError
from withstand.files import unwritable


def unwritten(path: Path, e: OSError) -> StorageError:
    """What failed, why, and the cure."""
    return StorageError(f"{unwritable(path, e)}, or name another folder by WITHSTAND_STATE.")
