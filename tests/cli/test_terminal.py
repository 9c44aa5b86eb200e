"""``withstand run`` on a real terminal: the panel is drawn, and whatever happens the terminal is left clean."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from terminals import OnTerminal
from withstand.testing import Schedule, TruthServer

RUN = (sys.executable, "-m", "withstand", "run")
SIZE = {"columns": 90, "rows": 30}
LONG = ("--set", "stages.0.duration_s=30")
CRASHING = """
import sys
from withstand.cli import dashboard, entry
calls = iter(range(2))
dashboard.panel = lambda *a, draw=dashboard.panel: next(calls) and sys.exit(next(calls)) or draw(*a)
entry.main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def server() -> Iterator[TruthServer]:
    with TruthServer(Schedule(ttft_ms=10, itl_ms=2, tokens=5)) as server:
        yield server


def load(server: TruthServer, folder: Path, *more: str) -> tuple[str, ...]:
    short = ("--set", "workload.options.output_len=5", "--output-dir", str(folder / "r"))
    return ("--base-url", server.base_url, "--request-rate", "20,30", "--duration", "1", "--json", *short, *more)


def has_panel(text: str) -> bool:
    return "▶" in text and "E2EL" in text


def is_clean(text: str) -> bool:
    """The cursor is seen, no other screen is shown, and the last panel was wiped away."""
    last = max(0, text.rfind("\x1b[K"))
    balanced = text.count("\x1b[?25l") == text.count("\x1b[?25h")
    return balanced and "\x1b[?1049h" not in text and re.search(r"\x1b\[\d+A\x1b\[J", text[last:]) is not None


def test_the_panel_is_drawn_and_wiped_away(server: TruthServer, tmp_path: Path) -> None:
    with OnTerminal((*RUN, *load(server, tmp_path)), **SIZE) as terminal:
        assert terminal.wait() in {0, 3}
        assert has_panel(terminal.text)
        assert is_clean(terminal.text)
        assert '"stages"' in terminal.text[terminal.text.rindex("\x1b[J") :]


def test_ctrl_c_leaves_it_clean(server: TruthServer, tmp_path: Path) -> None:
    with OnTerminal((*RUN, *load(server, tmp_path, "--set", "drain_s=1", *LONG)), **SIZE) as terminal:
        terminal.wait_for(lambda text: "rate-20" in text and has_panel(text))
        terminal.type(b"\x03")
        assert terminal.wait() == 3
        assert "goes on with it" in terminal.text
        assert is_clean(terminal.text)


def test_a_crash_leaves_it_clean(server: TruthServer, tmp_path: Path) -> None:
    command = (sys.executable, "-c", CRASHING, "run", *load(server, tmp_path))
    with OnTerminal(command, **SIZE) as terminal:
        assert terminal.wait() == 3
        assert "This is a fault of withstand itself (StopIteration" in terminal.text
        assert is_clean(terminal.text)
        assert "Traceback" not in terminal.text


def test_a_terminal_that_becomes_narrow_gets_a_bar_and_a_wide_one_the_panel_again(
    server: TruthServer, tmp_path: Path
) -> None:
    long = load(server, tmp_path, *LONG)
    with OnTerminal((*RUN, *long), **SIZE) as terminal:
        before = len(terminal.wait_for(has_panel))
        terminal.resize(50, 20)
        before = len(terminal.wait_for(lambda text: "[1/2]" in text[before:]))
        terminal.resize(120, 40)
        terminal.wait_for(lambda text: has_panel(text[before:]))
        terminal.type(b"\x03")
        terminal.wait()
        assert is_clean(terminal.text)


@pytest.mark.parametrize(
    ("more", "env"),
    [(("--plain",), {}), ((), {"TERM": "dumb"}), ((), {"PYTHONIOENCODING": "ascii"}), (("--quiet",), {})],
)
def test_where_it_is_not_wanted_or_cannot_be_there_is_no_panel(
    more: tuple[str, ...], env: dict[str, str], server: TruthServer, tmp_path: Path
) -> None:
    with OnTerminal((*RUN, *load(server, tmp_path, *more)), env=env, **SIZE) as terminal:
        assert terminal.wait() in {0, 3}
    assert "▶" not in terminal.text
    assert ("[1/2] rate-20" in terminal.text) is (more != ("--quiet",))


def test_no_color_is_obeyed(server: TruthServer, tmp_path: Path) -> None:
    with OnTerminal((*RUN, *load(server, tmp_path)), env={"NO_COLOR": "1"}, **SIZE) as terminal:
        assert terminal.wait() in {0, 3}
    assert has_panel(terminal.text)
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", terminal.text)
