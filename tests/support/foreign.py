"""Small result files of other tools, written here in their formats, and a short way to read a text."""

import json
from typing import Any

from withstand.interop.read import read_text
from withstand.interop.shape import ImportedRun

VLLM_BLOCK = """\
============ Serving Benchmark Result ============
Successful requests:                     90
Failed requests:                         10
Maximum request concurrency:             8
Request rate configured (RPS):           5.00
Benchmark duration (s):                  30.00
Total input tokens:                      9000
Total generated tokens:                  4500
Request throughput (req/s):              3.00
Output token throughput (tok/s):         150.00
Total Token throughput (tok/s):          450.00
---------------Time to First Token----------------
Mean TTFT (ms):                          52.50
Median TTFT (ms):                        50.00
P99 TTFT (ms):                           80.25
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          10.00
Median TPOT (ms):                        10.00
P99 TPOT (ms):                           11.00
---------------Inter-token Latency----------------
Mean ITL (ms):                           10.00
Median ITL (ms):                         9.90
P99 ITL (ms):                            14.00
==================================================
"""

VLLM_JSON: dict[str, Any] = {
    "date": "20250101-120000",
    "backend": "vllm",
    "model_id": "some/model",
    "num_prompts": 100,
    "framework": "sgl",
    "request_rate": 5.0,
    "burstiness": 1.0,
    "max_concurrency": 8,
    "duration": 30.0,
    "completed": 90,
    "total_input_tokens": 9000,
    "total_output_tokens": 4500,
    "request_throughput": 3.0,
    "request_goodput:": None,
    "output_throughput": 150.0,
    "total_token_throughput": 450.0,
    "mean_ttft_ms": 52.501,
    "median_ttft_ms": 50.0,
    "std_ttft_ms": 4.0,
    "p99_ttft_ms": 80.25,
    "mean_tpot_ms": 10.0,
    "median_tpot_ms": 10.0,
    "p99_tpot_ms": 11.0,
    "mean_itl_ms": 10.0,
    "median_itl_ms": 9.9,
    "p99_itl_ms": 14.0,
}

DETAILED: dict[str, Any] = {
    **{key: VLLM_JSON[key] for key in ("backend", "model_id", "request_rate")},
    "num_prompts": 3,
    "duration": 2.0,
    "completed": 2,
    "failed": 1,
    "total_input_tokens": 20,
    "total_output_tokens": 6,
    "request_throughput": 1.0,
    "output_throughput": 3.0,
    "input_lens": [10, 10, 10],
    "output_lens": [3, 3, 0],
    "ttfts": [0.05, 0.06, 0.0],
    "itls": [[0.01, 0.02], [0.01, 0.01], []],
    "errors": ["", "", "Traceback …\nClientConnectorError: Too many open files"],
    "start_times": [1000.0, 1000.5, 1001.0],
}

SGLANG_LINE = (
    '{"backend": "sglang", "dataset_name": "sharegpt", "request_rate": Infinity, "max_concurrency": null, '
    '"random_input_len": 1024, "random_output_len": 512, "duration": 10.0, "completed": 20, '
    '"total_input_tokens": 2000, "total_output_tokens": 1000, "total_output_tokens_retokenized": 998, '
    '"output_throughput": 100.0, "median_ttft_ms": 40.0, "mean_e2e_latency_ms": 900.0, "median_itl_ms": NaN}'
)


def one(text: str | dict[str, Any] | list[Any], name: str = "some.file") -> ImportedRun:
    """The only run of a text."""
    (run,) = several(text, name)
    return run


def several(text: str | dict[str, Any] | list[Any], name: str = "some.file") -> tuple[ImportedRun, ...]:
    return read_text(text if isinstance(text, str) else json.dumps(text), name).runs
