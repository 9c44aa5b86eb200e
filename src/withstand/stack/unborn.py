"""What is left of stacks whose supervisor never came to say who it is: logs, and nothing that runs."""

import os
from pathlib import Path

from withstand.errors import EngineError
from withstand.stack.standing import supervisors_of
from withstand.stack.state import has_state, remove_folder, stacks_folder
from withstand.stack.turn import remove_unused, turn_if_free


def unborn(name: str | None = None) -> list[Path]:
    """Their folders, of one name or of all."""
    named = (folder for folder in sorted(stacks_folder().glob("*/")) if name in {None, folder.name})
    return [folder for folder in named if _is_unborn(folder)]


def remove_unborn(name: str | None = None) -> list[str]:
    """Whose are removed.

    Raises:
        EngineError: one cannot be, or may be just coming up.
    """
    with turn_if_free(stacks_folder()) as is_ours:
        found = unborn(name)
        if found and not is_ours:
            raise EngineError("Another stack is being prepared, perhaps of that name; withstand down again after that.")
        for folder in found:
            try:
                remove_folder(folder)
            except OSError as e:
                raise EngineError(f"{folder} cannot be removed: {e.strerror or e}; remove it yourself.") from None
    remove_unused(stacks_folder())
    return [folder.name for folder in found]


def _is_unborn(folder: Path) -> bool:
    is_closed_or_none = not os.path.isdir(folder / "logs")  # noqa: PTH112  never raise
    return not (is_closed_or_none or has_state(folder) or supervisors_of(folder))
