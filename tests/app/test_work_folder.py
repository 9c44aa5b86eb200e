"""A folder among the system's temporary ones goes, also that of one who was killed."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from withstand.app.work_folder import temporary_folder

STAYS = """
import sys, tempfile, time
from withstand.app.work_folder import temporary_folder
tempfile.tempdir = sys.argv[1]
with temporary_folder("mine-") as folder:
    print(folder, flush=True)
    time.sleep(600)
"""


def test_what_a_killed_owner_has_left_goes_with_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", STAYS, str(tmp_path)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        its = Path(owner.stdout.readline().strip())
        with temporary_folder("mine-") as ours:
            assert ours.is_dir()
            assert its.is_dir(), "its owner lives"
        assert not ours.exists()
        owner.kill()
    assert its.is_dir()
    (tmp_path / "mine-file").touch()
    with temporary_folder("mine-") as ours:
        assert sorted(tmp_path.iterdir()) == sorted([ours, tmp_path / "mine-file"])
