"""``withstand calibrate``: the table, the sentence, the exit code."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from calibrating import make_calibration, make_step
from withstand.app.calibration.store import kept
from withstand.cli import calibrate as calibrate_verb
from withstand.cli.entry import exit_code_of
from withstand.metrics.calibration import Calibration, Load

MS = 1_000_000
SHORT = (make_step(10_000, streamed=False), make_step(12_000, streamed=False, cpu_share=1.0))
Plant = Callable[[Calibration], None]


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Plant:
    """Have the use case find this."""
    monkeypatch.setenv("WITHSTAND_CACHE", str(tmp_path))

    def put(calibration: Calibration) -> None:
        def found(*, seconds: float, listener: Callable[[Load, float], None]) -> Calibration:
            assert seconds == 15
            listener(calibration.steps[0].load, 0.0)
            return calibration

        monkeypatch.setattr(calibrate_verb, "calibrate", found)

    return put


def test_the_table_and_what_follows_from_it(plant: Plant, capsys: pytest.CaptureFixture[str]) -> None:
    plant(make_calibration())
    assert exit_code_of(["calibrate"]) == 0
    out, err = capsys.readouterr()
    assert "   8,000  10 %   0.080   0.200   0.003   0.012     5 %  good" in out
    assert "  50,000  97 %   0.080   0.200   0.003   0.012     5 %  client: CPU" in out
    flat = " ".join(out.split())
    assert (
        "One worker is good for about 40,000 tokens/s here (400 streams at once) and for about 10,000 short requests/s."
    ) in flat
    assert "TTFT within 0.012 ms, ITL within 0.003 ms (p99, kernel clock)" in flat
    assert "take one of --workers for every 40,000 tokens/s, up to 2" in flat
    assert "Calibrating: 8,000 tokens/s" in err
    assert max(map(len, out.splitlines())) <= 80
    assert kept() is not None


@pytest.mark.parametrize(
    ("calibration", "sentence"),
    [
        (make_calibration(make_step(8_000), make_step(9_000, server_share=1.0), *SHORT), "was at its own before"),
        (make_calibration(make_step(8_000), make_step(9_000, lag_p99_ns=9 * MS), *SHORT), "other programs had the"),
        (make_calibration(make_step(8_000), *SHORT), "the time was too short. Give it longer by --seconds."),
        (make_calibration(make_step(8_000), *SHORT, cores=1), "it shared its core with the null server."),
    ],
)
def test_a_limit_that_was_not_the_clients_is_at_least_that(
    plant: Plant, capsys: pytest.CaptureFixture[str], calibration: Calibration, sentence: str
) -> None:
    plant(calibration)
    assert exit_code_of(["calibrate", "--quiet"]) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "One worker is good for at least 8,000 tokens/s here" in out
    assert "Its own limit was not found:" in out
    assert sentence in out
    assert kept() is None, "a run must not go by what a busy machine, or a slow null server, has made of the client"


NO_STREAMS = make_step(8_000, late_p99_ns=160 * MS, lag_p99_ns=160 * MS, server_late_p99_ns=60 * MS)
NO_SHORT = make_step(1_000, streamed=False, late_p99_ns=60 * MS)


def test_where_nothing_was_found_that_is_said(plant: Plant, capsys: pytest.CaptureFixture[str]) -> None:
    plant(make_calibration(NO_STREAMS, NO_SHORT))
    assert exit_code_of(["calibrate", "--quiet"]) == 3
    out, err = capsys.readouterr()
    flat = " ".join(out.split())
    assert "could not be measured here: other programs had the cores." in flat
    assert (
        "Its stamps were true all the same: TTFT within 0.012 ms, ITL within 0.003 ms (p99 of the worst step)" in flat
    )
    assert max(map(len, out.splitlines())) <= 80
    assert err == ""


def test_what_was_found_of_one_kind_is_told(plant: Plant, capsys: pytest.CaptureFixture[str]) -> None:
    plant(make_calibration(NO_STREAMS, make_step(250, streamed=False), NO_SHORT))
    assert exit_code_of(["calibrate", "--quiet"]) == 3
    flat = " ".join(capsys.readouterr().out.split())
    assert "good for an unknown number of tokens/s here and for at least 250 short requests/s." in flat
    assert "could not be measured" not in flat
    assert "Its own limit was not found: other programs had the cores." in flat


def test_stamps_that_were_off_are_not_called_true(plant: Plant, capsys: pytest.CaptureFixture[str]) -> None:
    plant(make_calibration(make_step(8_000, itl_error_p99_ns=2 * MS), NO_SHORT))
    assert exit_code_of(["calibrate", "--quiet"]) == 3
    assert "true" not in capsys.readouterr().out


def test_json_has_every_fact_and_what_follows(plant: Plant, capsys: pytest.CaptureFixture[str]) -> None:
    plant(make_calibration())
    assert exit_code_of(["calibrate", "--quiet", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["whole"] is True
    assert told["capacity"] == {"tokens_per_s": 40000, "streams": 400, "tokens": 64, "requests_per_s": 10000}
    assert [(s["verdict"], s["limit"]) for s in told["steps"][:3]] == [
        ("good", None),
        ("good", None),
        ("client", "CPU"),
    ]


def test_too_little_time_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["calibrate", "--seconds", "0"]) == 2
    assert "--seconds" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["calibrate", "doctor http://127.0.0.1:9"])
def test_seconds_that_are_no_number_are_refused(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of([*verb.split(), "--seconds", "nan"]) == 2
    assert "'--seconds': 'nan' is no number" in capsys.readouterr().err
