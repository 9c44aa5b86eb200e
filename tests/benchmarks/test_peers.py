"""What the adapters make of other clients' reports. The reports here are made up, in the clients' shapes."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.peers.client import Case, Client, Command, ReportError, Said, Spread
from benchmarks.peers.clients import CLIENTS, chosen, installed
from benchmarks.peers.home import receipt
from benchmarks.peers.run import run
from benchmarks.peers.tokenizer import hub_cache, write_tokenizer

from withstand.testing import Schedule, TruthServer
from withstand.testing.truth.behaviours import style_of
from withstand.testing.truth.manners import foreign

_FLAT = {
    "completed": 4,
    "total_output_tokens": 40,
    "request_throughput": 2.5,
    **{f"{kind}_ttft_ms": value for kind, value in (("mean", 51.0), ("median", 50.5), ("p99", 55.0))},
    **{f"{kind}_tpot_ms": value for kind, value in (("mean", 20.0), ("median", 20.1), ("p99", 20.9))},
    **{f"{kind}_itl_ms": value for kind, value in (("mean", 19.0), ("median", 19.9), ("p99", 80.0))},
}
_E2EL = (("mean", 350.0), ("median", 351.0), ("p99", 360.0))


def _latencies(names: tuple[str, str, str], factor: float = 1) -> list[dict[str, float]]:
    values = ((51.0, 50.5, 55.0), (20.0, 20.1, 20.9), (19.0, 19.9, 80.0), (350.0, 351.0, 360.0))
    return [dict(zip(names, (value * factor for value in row), strict=True)) for row in values]


def _guidellm() -> dict[str, Any]:
    ttft, _, itl, e2el = (
        {"mean": d["mean"], "median": d["median"], "percentiles": {"p99": d["p99"]}}
        for d in _latencies(("mean", "median", "p99"))
    )
    metrics = {
        "request_totals": {"successful": 4, "errored": 1, "incomplete": 0, "total": 5},
        "requests_per_second": {"successful": {"mean": 2.5}},
        "output_token_count": {"successful": {"total_sum": 40.0}},
        "time_to_first_token_ms": {"successful": ttft},
        "time_per_output_token_ms": {"successful": {"mean": 35.0}},
        "inter_token_latency_ms": {"successful": itl},
        "request_latency": {"successful": {"mean": 0.35, "median": 0.351, "percentiles": {"p99": 0.36}}},
    }
    assert e2el["mean"] == 350
    return {"benchmarks": [{"metrics": metrics}]}


def _aiperf() -> dict[str, Any]:
    ttft, tpot, itl, e2el = _latencies(("avg", "p50", "p99"))
    return {
        "request_count": {"unit": "requests", "avg": 4.0},
        "error_request_count": {"unit": "requests", "avg": 1.0},
        "total_output_tokens": {"avg": 30.0},
        "total_osl": {"avg": 40.0},
        "request_throughput": {"avg": 2.5},
        "time_to_first_token": ttft,
        "inter_token_latency": tpot,
        "inter_chunk_latency": itl,
        "request_latency": e2el,
    }


def _genai() -> dict[str, Any]:
    ttft, tpot, _, e2el = _latencies(("mean", "p50", "p99"))
    stats = {"ttft": ttft, "tpot": tpot, "e2e_latency": e2el, "num_output_tokens": {"sum": 40}}
    counts = {"num_completed_requests": 4, "num_error_requests": 1, "requests_per_second": 2.5}
    return {"aggregated_metrics": {"stats": stats, **counts}}


def _inference_perf() -> dict[str, Any]:
    ttft, tpot, itl, e2el = _latencies(("mean", "median", "p99"), 1e-3)
    latency = {"time_to_first_token": ttft, "time_per_output_token": tpot, "inter_token_latency": itl}
    good = {"count": 4, "latency": latency | {"request_latency": e2el}, "throughput": {"requests_per_sec": 2.5}}
    return {"successes": good | {"output_tokens": {"total": 40.0}}, "failures": {"count": 1}}


def _flat(e2el: str, **more: Any) -> dict[str, Any]:
    return _FLAT | {f"{kind}_{e2el}_ms": value for kind, value in _E2EL} | more


REPORTS: dict[str, tuple[str, Any]] = {
    "withstand": ("withstand/summary.json", {"stages": [_flat("e2el", failed=1)]}),
    "vllm": ("vllm.json", _flat("e2el", failed=1)),
    "sglang": ("sglang.jsonl", _flat("e2e_latency")),
    "sglang-rust": ("sglang.jsonl", _flat("e2e_latency")),
    "guidellm": ("guidellm.json", _guidellm()),
    "aiperf": ("aiperf/run/profile_export_aiperf.json", _aiperf()),
    "genai-bench": ("genai/D32_16_text-to-text_num_concurrency_1_time_2s.json", _genai()),
    "inference-perf": ("inference-perf/summary_lifecycle_metrics.json", _inference_perf()),
}


def _parsed(name: str, folder: Path, report: Any) -> Said:
    path = folder / REPORTS[name][0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report), "utf-8")
    return CLIENTS[name].parse(folder)


def _close(said: Spread, mean: float, p50: float, p99: float) -> bool:
    return (said.mean, said.p50, said.p99) == pytest.approx((mean, p50, p99))


@pytest.mark.parametrize("name", REPORTS)
def test_what_a_client_says_is_understood_in_our_words_and_in_ms(name: str, tmp_path: Path) -> None:
    said = _parsed(name, tmp_path / "case", REPORTS[name][1])
    assert (said.completed, said.output_tokens, said.request_rate_rps) == (4, 40, 2.5)
    assert said.failed == (None if name.startswith("sglang") else 1)
    assert _close(said.ttft_ms, 51, 50.5, 55)
    assert _close(said.e2el_ms, 350, 351, 360)
    assert said.tpot_ms == Spread() if name == "guidellm" else _close(said.tpot_ms, 20, 20.1, 20.9)
    assert said.itl_ms == Spread() if name == "genai-bench" else _close(said.itl_ms, 19, 19.9, 80)


def test_every_client_is_tried_here() -> None:
    assert set(REPORTS) == set(CLIENTS)


@pytest.mark.parametrize("name", REPORTS)
def test_no_report_is_an_error_of_the_report(name: str, tmp_path: Path) -> None:
    with pytest.raises(ReportError):
        CLIENTS[name].parse(tmp_path)


def test_what_is_no_number_is_not_known(tmp_path: Path) -> None:
    said = _parsed("vllm", tmp_path, _flat("e2el", mean_ttft_ms=math.nan, p99_ttft_ms=None, failed=True))
    assert said.ttft_ms == Spread(None, 50.5, None)
    assert said.failed is None


def test_a_report_without_errors_says_that_there_were_none(tmp_path: Path) -> None:
    report = _aiperf()
    del report["error_request_count"]
    assert _parsed("aiperf", tmp_path, report).failed == 0


def _case(folder: Path, base_url: str = "http://127.0.0.1:1", **load: Any) -> Case:
    tokenizer = folder / "home" / "tokenizer"
    return Case(base_url=base_url, folder=folder / "case", requests=3, output_tokens=4, tokenizer=tokenizer, **load)


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
def test_a_rate_or_a_concurrency_is_asked_for_and_never_both(client: Client, tmp_path: Path) -> None:
    closed, opened = (client.command(_case(tmp_path, **load)) for load in ({"concurrency": 77}, {"rate_rps": 77.5}))
    assert "77" in _words(closed)
    assert ("77.5" in _words(opened)) == (client.name != "genai-bench")
    assert "77.5" not in _words(closed)


def _words(command: Command) -> str:
    return " ".join((*command.argv, *command.files.values()))


def test_withstand_is_run_and_understood(tmp_path: Path) -> None:
    tokenizer = write_tokenizer(tmp_path / "home")
    with TruthServer(Schedule(ttft_ms=5, itl_ms=2, tokens=4), behaviour={"plain": 0.5, "http_500": 0.5}) as server:
        case = Case(
            base_url=server.base_url, folder=tmp_path / "case", requests=10, output_tokens=4, tokenizer=tokenizer
        )
        outcome = run(CLIENTS["withstand"], case, timeout_s=60)
    assert outcome.said is not None, outcome.trouble
    assert (outcome.said.completed, outcome.said.failed, outcome.said.output_tokens) == (5, 5, 20)
    assert outcome.said.ttft_ms.p50 is not None


class _Script:
    """A client that is a line of Python."""

    name, environment, version, keeps_rate, keeps_count = "script", None, "0", False, True

    def __init__(self, code: str) -> None:
        self.code = code

    def command(self, case: Case) -> Command:
        return Command((sys.executable, "-c", self.code), {"PEER": "here"}, {"sub/given": "text"})

    def parse(self, folder: Path) -> Said:
        raise ReportError("nothing was written")


def test_a_client_that_crashes_is_a_result_with_its_last_words(tmp_path: Path) -> None:
    client = _Script("import os; assert open('sub/given').read() == 'text'; raise ValueError(os.environ['PEER'])")
    outcome = run(client, _case(tmp_path), timeout_s=60)
    assert (outcome.exit_code, outcome.said, outcome.trouble) == (1, None, "ValueError: here")


def test_a_client_that_hangs_is_ended(tmp_path: Path) -> None:
    outcome = run(_Script("import time; time.sleep(600)"), _case(tmp_path), timeout_s=0.5)
    assert outcome.exit_code is None
    assert outcome.said is None


def test_clients_that_are_not_installed_are_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WITHSTAND_PEERS", str(tmp_path))
    (tmp_path / "sglang").mkdir()
    receipt("sglang").write_text("sglang==0", "utf-8")
    there = installed(chosen(["withstand", "sglang-rust", "aiperf"]))
    assert [client.name for client in there] == ["withstand", "sglang-rust"]
    assert "left out: aiperf" in capsys.readouterr().err


def test_clients_are_chosen_by_name() -> None:
    assert [client.name for client in chosen(["vllm", "withstand"])] == ["withstand", "vllm"]
    assert len(chosen([])) == len(CLIENTS)
    with pytest.raises(SystemExit, match="no adapter for locust"):
        chosen(["locust"])


def test_the_tokenizer_counts_as_the_truth_server_does(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    folder = write_tokenizer(tmp_path)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    error = "".join(style_of("error_text_as_content").sentence or ())
    strange = "".join(map(foreign, range(12)))
    for text, tokens in (("t0 t1 t2 t10 t999", 5), (" tok tok tok", 3), (error, 11), (strange, 12), (foreign(7), 1)):
        assert len(tokenizer.encode(text).ids) == tokens
    odd = "é\u2028 <html> 🙂 t1"
    assert tokenizer.decode(tokenizer.encode(odd).ids) == odd
    cache, name = hub_cache(folder)
    assert list(Path(cache).glob(f"hub/models--{name.replace('/', '--')}/snapshots/*/tokenizer.json"))
