"""Lines between processes: none is lost, none is torn, whatever the pipe does to them."""

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.load.child import Child
from withstand.load.lines import Lines


@given(st.lists(st.binary(max_size=40).filter(lambda b: b"\n" not in b)), st.lists(st.integers(1, 30)))
def test_lines_come_whole_however_they_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    here, there = os.pipe()
    data = b"".join(line + b"\n" for line in lines)
    reader, got = Lines(here), []
    for size in [*cuts, len(data)]:
        piece, data = data[:size], data[size:]
        if piece:
            os.write(there, piece)
            got += reader.read()
    os.close(there)
    got += reader.read()
    os.close(here)
    assert got == lines
    assert reader.ended


def test_what_came_behind_the_line_waited_for_is_not_forgotten() -> None:
    here, there = os.pipe()
    os.write(there, b"one\ntwo\nthree\n")
    os.close(there)
    reader = Lines(here)
    assert reader.wait() == b"one"
    assert reader.waiting
    assert reader.read() == [b"two", b"three"]
    assert reader.wait() == b""
    os.close(here)


def test_a_child_is_told_and_heard_and_says_how_it_ended(tmp_path: Path) -> None:
    child = Child("withstand.load.worker", tmp_path / "log")
    child.send(b"no job at all")
    while not child.ended:
        child.hear()
    assert child.why().startswith("exit status 1, msgspec.")
    child.end()


def test_a_log_that_has_lost_its_name_still_tells_the_end(tmp_path: Path) -> None:
    child = Child("withstand.load.worker", tmp_path / "log")
    (tmp_path / "log").unlink()
    child.send(b"{")
    while not child.ended:
        child.hear()
    assert "msgspec" in child.why()
    child.end()


def test_a_child_that_does_not_go_is_killed(tmp_path: Path) -> None:
    """Its standard input stays open in a second hand, so that it does not see the end."""
    child = Child("withstand.load.worker", tmp_path / "log")
    keep = os.dup(child._process.stdin.fileno())
    watch = threading.Timer(10, lambda: pytest.fail("it was waited for too long"))
    watch.start()
    child.end(patience_s=0.2)
    watch.cancel()
    os.close(keep)
    assert child._process.returncode == -9
