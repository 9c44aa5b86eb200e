"""Writing whole files: where something else than a file stands, it stays."""

import os
import threading
from pathlib import Path

from withstand.files import distinct_names, is_there, write_atomically


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("today")
    for data in (b"one", b"two"):
        write_atomically(tmp_path / "latest", data)
        assert (tmp_path / "today").read_bytes() == data
    assert (tmp_path / "latest").is_symlink()


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"told")
    reader.join()
    assert heard == [b"told"]
    assert pipe.is_fifo()


def test_a_path_that_leads_nowhere_can_be_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert not is_there(tmp_path / "a")
    assert distinct_names([tmp_path / "a"])[0] in {"a", "b"}
    assert not is_there(tmp_path / ("n" * 5000))


def test_names_are_as_short_as_they_can_be_told_apart(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("x/old/r0", "x/new/r0", "y/new/r0", "r1", "x/old/r0")]
    assert distinct_names(paths) == ["old/r0 #1", "x/new/r0", "y/new/r0", "r1", "old/r0 #2"]
