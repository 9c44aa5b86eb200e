"""The records of a stage while it goes on: what the workers have appended since one looked last."""

from pathlib import Path

import msgspec

from withstand.record import Record, decode_record
from withstand.runs import RunFolder


class RecordTail:
    """Follows the workers' files of a run folder from where they end now."""

    def __init__(self, folder: RunFolder, stage: int) -> None:
        self._folder = folder
        self._stage = stage
        self._places = {path: path.stat().st_size for path in folder.worker_files()}

    def read(self) -> list[Record]:
        """Whole lines only; what is no record is left to whoever reads the folder in the end."""
        return [
            record for path in self._folder.worker_files() for record in self._new(path) if record.stage == self._stage
        ]

    def _new(self, path: Path) -> list[Record]:
        with path.open("rb") as file:
            file.seek(self._places.get(path, 0))
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._places[path] = self._places.get(path, 0) + len(whole)
        found = []
        for line in whole.splitlines():
            try:
                found.append(decode_record(line))
            except msgspec.MsgspecError:
                continue
        return found
