"""A run as metrics: what is not known is left out, and names that need it are escaped."""

from withstand.metrics.live import Snapshot
from withstand.metrics.live.exposition import run_exposition
from withstand.metrics.live.sketch import Sketch, bucket_of
from withstand.metrics.live.snapshot import Current, LatencyNow, Quantiles
from withstand.wire.prometheus import read_series


def test_what_is_known_is_said() -> None:
    latency = LatencyNow(rolling=Quantiles(n=0), whole=Quantiles(n=4, p50=20, mean=25))
    current = Current(index=1, name='a "b"', elapsed_s=1, rate_asked=2, done=5, failed=1, latencies={"ttft": latency})
    text = run_exposition(Snapshot(state="running", current=current), "r", 2.0)
    names = {line.split("{")[0].split()[0] for line in text.splitlines() if not line.startswith("#")}
    values = {(s.name, s.labels.get("outcome")): s.value for s in read_series(text, names)}
    assert values["withstand_run_requests_total", "good"] == 4
    assert values["withstand_run_latency_seconds_sum", None] == 0.1
    assert values["withstand_run_latency_seconds_count", None] == 4
    assert values["withstand_run_price_per_hour", None] == 2
    assert "in_flight" not in text
    assert r'stage="a \"b\""' in text


def test_no_run_is_no_fault() -> None:
    assert run_exposition(None, "", None) == ""


def test_a_sketch_s_mean_is_near() -> None:
    sketch = Sketch()
    assert sketch.mean() is None
    sketch.put([bucket_of(value) for value in (1e6, 2e6, 6e6)])
    mean = sketch.mean()
    assert mean is not None
    assert abs(mean / 3e6 - 1) < 0.017
