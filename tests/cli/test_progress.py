"""How progress reads."""

import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from withstand.app.screen import StageProgress
from withstand.cli import doctor
from withstand.cli.doctor import Told
from withstand.cli.progress import counts, remaining_s, seconds_left, share_done
from withstand.cli.views import Bars, Lines, Nowhere, View, view


def progress(**more: object) -> StageProgress:
    fields = {
        "elapsed_s": 10.0,
        "planned": 100,
        "duration_s": None,
        "sent": 30,
        "done": 25,
        "failed": 0,
        "in_flight": 5,
        "output_tokens": 12_340,
    }
    return StageProgress(**{**fields, **more})


def test_counts_and_time_left() -> None:
    assert counts(progress()) == "25/100 done, 5 in flight, 1,234 tok/s"
    assert counts(progress(silent_s=12.3)) == "25/100 done, 5 in flight, 1,234 tok/s, a worker silent for 12 s"
    assert counts(progress(planned=None, failed=2)) == "25 done, 2 failed, 5 in flight, 1,234 tok/s"
    assert seconds_left(progress()) == "30 s left"
    assert seconds_left(progress(planned=None, duration_s=15.0)) == "5 s left"


def test_nothing_is_claimed_before_there_is_a_pace() -> None:
    assert remaining_s(progress(done=0)) is None
    assert seconds_left(progress(planned=None)) == ""
    assert counts(progress(elapsed_s=0.0)).endswith("0 tok/s")


@given(
    elapsed_s=st.floats(0, 1e6),
    planned=st.none() | st.integers(1, 10**6),
    duration_s=st.none() | st.floats(0.1, 1e6),
    done=st.integers(0, 10**7),
)
def test_a_share_is_a_share(elapsed_s: float, planned: int | None, duration_s: float | None, done: int) -> None:
    told = progress(elapsed_s=elapsed_s, planned=planned, duration_s=duration_s, done=done)
    share, left_s = share_done(told), remaining_s(told)
    assert (share is None) == (planned is None and duration_s is None)
    assert share is None or 0 <= share <= 1
    assert left_s is None or (left_s >= 0 and math.isfinite(left_s))


def test_a_log_gets_a_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    lines.begin("[1/2] rate-4")
    for tenth in range(250):
        lines.update(0.5, f"at {tenth / 10:g}", tenth / 10)
    lines.end()
    assert capsys.readouterr().err.splitlines() == ["[1/2] rate-4", "[1/2] rate-4: at 10", "[1/2] rate-4: at 20"]


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    use(view(quiet=True))
    assert isinstance(view(quiet=True), Nowhere)
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_there_are_no_bars(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(view(quiet=False), Lines)


def test_a_bar_shows_the_text_and_leaves_only_messages() -> None:
    drawn = io.StringIO()
    use(Bars(Console(file=drawn, force_terminal=True, width=100, color_system=None)))
    text = drawn.getvalue()
    assert "[1/2] rate-4" in text
    assert "25/100 done" in text
    assert "a [message]" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h"), "the cursor is there again"


def use(drawn_on: View) -> None:
    drawn_on.begin("[1/2] rate-4")
    drawn_on.update(None, "", 0.0)
    drawn_on.update(0.25, "25/100 done", 1.0)
    drawn_on.message("a [message]")
    drawn_on.end()
    drawn_on.end()


def test_an_examination_tells_on_a_terminal_what_it_does_and_how_many_requests_went_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=80)
    monkeypatch.setattr(doctor, "is_drawable", lambda: True)
    monkeypatch.setattr(doctor, "Bars", lambda: Bars(console))
    told = Told()
    told.tell("The echo engine listens at http://x.")
    told.tell("How answers come …")
    told.asking()
    told.asking()
    told.close()
    assert "The echo engine listens" in text.getvalue()
    assert "How answers come" in text.getvalue()
    assert "1 request" in text.getvalue()
    assert "2 requests" in text.getvalue()
    assert capsys.readouterr().err == ""


def test_an_examination_tells_a_log_its_chapters_alone(capsys: pytest.CaptureFixture[str]) -> None:
    told = Told()
    told.tell("How answers come …")
    told.asking()
    told.close()
    assert capsys.readouterr().err == "How answers come …\n"
