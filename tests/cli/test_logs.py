"""What services say is shown line by line, whole, and never read all at once."""

from pathlib import Path

import pytest

from withstand.cli import logs


def test_a_line_that_is_being_written_is_shown_once_and_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.log"
    path.write_text("one\ntwo\nthr")
    at = logs._show_tail(path, 1, "a", 0)
    assert capsys.readouterr().out == "two\n"
    at = logs._show_from(path, at, "a", 0)
    assert capsys.readouterr().out == ""
    with path.open("a") as log:
        log.write("ee\n\nfive\n")
    at = logs._show_from(path, at, "a", 1)
    assert capsys.readouterr().out.splitlines() == ["a | three", "a | ", "a | five"]
    assert at == path.stat().st_size


def test_a_flood_is_read_in_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.log"
    with path.open("wb") as log:
        log.write(b"x\n" + b"y" * 3_000_000 + b"\nz\n")
    at, shown, reads = 0, "", 0
    while at < path.stat().st_size:
        at, reads = logs._show_from(path, at, "a", 0), reads + 1
        shown += capsys.readouterr().out
    assert reads > 2
    assert shown.replace("\n", "") == "x" + "y" * 3_000_000 + "z"
