import pickle
from array import array
from pathlib import Path

import pytest

from withstand.errors import StorageError
from withstand.runs.shelf import Shelf, ShelvedRun


@pytest.mark.parametrize(("typecode", "values"), [("q", [-5, 0, 1 << 40]), ("I", [0, 7]), ("d", [0.25, 1e300])])
def test_a_run_is_read_where_its_place_is_known(tmp_path: Path, typecode: str, values: list[float]) -> None:
    shelf = Shelf(tmp_path, "one")
    shelf.keep(array("q", [1]))
    run = shelf.keep(array(typecode, values))
    elsewhere: ShelvedRun = pickle.loads(pickle.dumps(run))
    assert len(elsewhere) == len(values)
    assert list(elsewhere.view()) == values


def test_no_room_is_said_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"set TMPDIR"):
        Shelf(tmp_path / "gone", "one").keep(array("q", [1]))
