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


@pytest.mark.parametrize("lines", [0, 1, 2, 5, 1500, 2000, 9000])
@pytest.mark.parametrize("rest", [b"", b"no newline"])
def test_so_many_lines_are_shown_as_are_asked_for_however_long(
    lines: int, rest: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, said = tmp_path / "a.log", [f"{i} {'x' * (i % 300)}" for i in range(1999)] + ["y" * 200_000]
    path.write_bytes("".join(f"{line}\n" for line in said).encode() + rest)
    at = logs._show_tail(path, lines, "a", 0)
    assert capsys.readouterr().out.splitlines() == (said[-lines:] if lines else [])
    assert at == path.stat().st_size - len(rest)


@pytest.mark.parametrize("text", ["", "no newline"])
def test_a_log_without_a_whole_line_shows_none(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.log"
    assert logs._show_tail(path, 5, "a", 0) == 0
    path.write_text(text)
    assert logs._show_tail(path, 5, "a", 0) == 0
    assert capsys.readouterr().out == ""
