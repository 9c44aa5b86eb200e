"""GuideLLM.

Its ITL is a mean of each request, so a tail of gaps cannot be seen; its "time per output token" is latency / tokens,
TTFT included, and therefore not our TPOT: it is left out.
"""

from pathlib import Path
from typing import Any

from benchmarks.peers.client import Case, Command, ReportError, Said, Spread, count, number, options, result_json
from benchmarks.peers.home import program


class Guidellm:
    """The adapter."""

    name = "guidellm"
    environment = "guidellm"
    version = "0.8.1"
    keeps_rate = True
    keeps_count = True

    def command(self, case: Case) -> Command:
        """A profile of a constant rate, or of streams."""
        profile = f"kind=concurrent,streams={case.concurrency}"
        if case.rate_rps is not None:
            profile = f"kind=constant,rate={case.rate_rps}"
        backend = f"kind=openai_http,target={case.base_url},model={case.model},timeout={case.timeout_s}"
        backend += ",request_format=/v1/chat/completions"
        data = f"kind=synthetic_text,prompt_tokens={case.input_tokens},output_tokens={case.output_tokens}"
        argv = options(
            {
                "--backend": backend,
                "--profile": profile,
                "--constraint": f"kind=max_requests,count={case.requests}",
                "--data": data,
                "--tokenizer": f"kind=hf_auto,model={case.tokenizer}",
                "--output": f"kind=json,path={case.folder / 'guidellm.json'}",
                "--disable-console": True,
            }
        )
        return Command((program(self.name, "guidellm"), "run", *argv))

    def parse(self, folder: Path) -> Said:
        """The successful requests of its first benchmark."""
        report = result_json(folder, "guidellm.json")
        try:
            metrics = report["benchmarks"][0]["metrics"]
        except (KeyError, IndexError, TypeError) as e:
            raise ReportError("no benchmark in it") from e
        totals = metrics.get("request_totals")
        return Said(
            completed=count(totals, "successful"),
            failed=count(totals, "errored"),
            output_tokens=count(_successful(metrics, "output_token_count"), "total_sum"),
            request_rate_rps=number(_successful(metrics, "requests_per_second"), "mean"),
            ttft_ms=_spread(metrics, "time_to_first_token_ms"),
            itl_ms=_spread(metrics, "inter_token_latency_ms"),
            e2el_ms=_spread(metrics, "request_latency", 1e3),
        )


def _successful(metrics: dict[str, Any], name: str) -> dict[str, Any]:
    found = (metrics.get(name) or {}).get("successful")
    return found if isinstance(found, dict) else {}


def _spread(metrics: dict[str, Any], name: str, to_ms: float = 1) -> Spread:
    found = _successful(metrics, name)
    p99 = number(found.get("percentiles"), "p99", to_ms)
    return Spread(number(found, "mean", to_ms), number(found, "median", to_ms), p99)
