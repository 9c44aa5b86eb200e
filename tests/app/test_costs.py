"""Money and energy of real runs: a real load, a fake DCGM exporter that is scraped by the real watch, every report."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from exporter import Exporter, dcgm
from withstand.testing import Schedule, TruthServer

QUICK = Schedule(ttft_ms=20, itl_ms=5, tokens=10)
SMALL = ("--input-len", "50", "--output-len", "10", "--scrape-interval", "0.2")
WATTS = {0: 300.0, 1: 500.0, 2: 60.0}


def withstand(*arguments: str, cwd: Path) -> str:
    command = [sys.executable, "-m", "withstand", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in {0, 3}, done.stderr  # 3: this machine was too busy to measure well
    return " ".join(done.stdout.split())


def stages_of(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    summary = json.loads((folder / "summary.json").read_text("utf-8"))
    return summary, summary["stages"]


@pytest.mark.parametrize("counters", [True, False], ids=["counter", "power"])
def test_energy_of_a_run_is_what_the_exporter_tells(counters: bool, tmp_path: Path) -> None:
    with TruthServer(QUICK) as server, Exporter(dcgm(WATTS, idle=[2], counters=counters)) as exporter:
        target = ("--base-url", server.base_url, "--metrics-url", exporter.url)
        price = ("--set", "price.per_gpu_hour=2", "--set", "price.per_kwh=0.25")
        load = ("--max-concurrency", "4", "--num-prompts", "120", "--goodput", "ttft:5000")
        shown = withstand("run", *target, *SMALL, *load, *price, "--output-dir", "r", cwd=tmp_path)
    _, (stage,) = stages_of(tmp_path / "r")
    energy, cost = stage["energy"], stage["cost"]
    assert (energy["gpus"], energy["gpus_seen"]) == (2, 3), "one holds no memory and does nothing"
    assert energy["by"] == ("counter" if counters else "power")
    assert energy["mean_watts"] == pytest.approx(800, rel=0.2)
    assert energy["joules"] == pytest.approx(energy["mean_watts"] * stage["duration"])
    assert energy["per_output_token_j"] == pytest.approx(energy["joules"] / 1200)
    assert energy["per_request_j"] == pytest.approx(energy["joules"] / 120)
    assert energy["kwh_per_million_output"] == pytest.approx(energy["per_output_token_j"] / 3.6)
    assert stage["server"]["gpus"] == 2
    assert (cost["gpus"], cost["price_per_hour"]) == (2, 4.0)
    assert cost["per_million_good_output"] == pytest.approx(cost["per_million_output"])
    assert cost["power_per_million_output"] == pytest.approx(0.25 * energy["kwh_per_million_output"])
    assert "2 of 3" in shown
    page = (tmp_path / "r" / "report.html").read_text("utf-8")
    assert '<section id="energy">' in page
    assert '<section id="costs">' in page
    (row,) = csv.DictReader(io.StringIO(csv_of(tmp_path)))
    assert float(row["gpu_joules"]) == pytest.approx(energy["joules"])
    assert float(row["power_per_1m_output_tokens"]) == pytest.approx(cost["power_per_million_output"])
    assert "| energy | GPUs |" in withstand("report", "r", "--format", "markdown", cwd=tmp_path)


def csv_of(cwd: Path) -> str:
    command = [sys.executable, "-m", "withstand", "report", "r", "--format", "csv"]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=True).stdout


def test_a_report_is_asked_for_prices_afterwards(tmp_path: Path) -> None:
    with TruthServer(QUICK) as server:
        load = ("--max-concurrency", "1,4", "--num-prompts", "30")
        withstand("run", "--base-url", server.base_url, *SMALL, *load, "--output-dir", "r", cwd=tmp_path)
    assert stages_of(tmp_path / "r")[0]["economy"] is None
    price = ("--price-per-hour", "3.6", "--against-token-price", "3:6")
    dear = withstand("report", "r", "--price-per-hour", "360", "--against-token-price", "3:6", cwd=tmp_path)
    assert "The machine is never cheaper at the largest rate that was seen" in dear
    day = ("--busy-hours", "10", "--requests-per-day", "500", "--idle-timeout", "600", "--cold-start", "45")
    cheap = withstand("report", "r", *price, *day, cwd=tmp_path)
    assert "The machine is cheaper from" in cheap
    assert "the most that was seen (concurrency-4)" in cheap
    assert "cold starts of 45 s" in cheap
    told = json.loads(withstand("report", "r", *price, *day, "--format", "json", cwd=tmp_path))
    economy, (_, high) = told["economy"], told["stages"]
    assert economy["sustained"]["stage"] == "concurrency-4"
    assert economy["break_even"]["rate_rps"] == pytest.approx(0.001 / 0.00021)
    assert economy["break_even"]["times_cheaper"] == pytest.approx(high["cost"]["times_cheaper"])
    assert economy["always_on_per_day"] == pytest.approx(86.4)
    assert economy["scaled_per_day"] < economy["always_on_per_day"]
    both = withstand("compare", "one=r", "two=r", *price, "--force", cwd=tmp_path)
    assert "cheaper than tokens" in both
