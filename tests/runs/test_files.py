"""Writing whole files: where something else than a file stands, it stays."""

import os
import threading
from pathlib import Path

from withstand.files import distinct_names, folders_below, is_there, numbered, write_atomically


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


def test_a_name_at_the_root_has_one_slash() -> None:
    assert distinct_names([Path("/x"), Path("/a/x")]) == ["/x", "a/x"]


def test_a_number_makes_no_name_like_another() -> None:
    assert numbered(["x #1", "x", "y", "x"]) == ["x #1", "x #2", "y", "x #3"]
    assert len(set(distinct_names([Path("/x #1"), Path("/x"), Path("/x")]))) == 3


def test_names_that_are_no_text_can_be_written_and_told_apart() -> None:
    names = distinct_names([Path(os.fsdecode(b"/r/x\xff")), Path(os.fsdecode(b"/r/x\xfe"))])
    assert len({name.encode() for name in names}) == 2


def test_links_are_followed_to_each_folder_once(tmp_path: Path) -> None:
    for name in ("elsewhere/one", "top/a/below"):
        (tmp_path / name).mkdir(parents=True)
    links = {"again": "a/below", "link": "../elsewhere", "self": ".", "up": "..", "gone": "nowhere"}
    for name, to in links.items():
        (tmp_path / "top" / name).symlink_to(to)
    top = tmp_path / "top"
    found = [folder.relative_to(top).as_posix() for folder, _, _ in folders_below(top)]
    assert found == [".", "a", "again", "link", "link/one"]
