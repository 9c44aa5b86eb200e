"""One of several readers of a large run: ``gather`` starts it, gives it a ``Part`` and waits for its file."""

import gc
import pickle
import sys
from pathlib import Path

import msgspec

from withstand.app.gather import FAILED, Part, fold_stages
from withstand.errors import WithstandError
from withstand.runs import RunFolder, Shelf


def main() -> int:
    """Fold a share; its exit code."""
    gc.disable()  # records come and go by the million, and none holds itself
    try:
        _fold(msgspec.json.decode(sys.stdin.buffer.read(), type=Part))
    except WithstandError as e:
        sys.stderr.write(f"{e}\n")
        return FAILED
    return 0


def _fold(part: Part) -> None:
    shelf = Shelf(Path(part.room), f"numbers-{part.share.index}")
    found = fold_stages(RunFolder.open(Path(part.folder)), part.wanted.folds(shelf.keep), part.share)
    with part.result.open("wb") as file:
        pickle.dump(found, file, protocol=5)


if __name__ == "__main__":
    sys.exit(main())
