"""Builders of facts: answers of a paced server, and the context they are judged in."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from withstand.metrics.context import StageContext
from withstand.record import Clock, Record, Status, TokensFrom
from withstand.spec import Arrivals, Constant, Stage

MS = 1_000_000
SHARED = Path(os.environ.get("WITHSTAND_SHARED") or Path(__file__).parents[2].parent / "shared")


def make_answer(
    id: int = 0,  # noqa: A002 - the record's own field
    *,
    at_ms: float = 0.0,
    ttft_ms: float = 50.0,
    itl_ms: float = 10.0,
    tokens: int = 20,
    **facts: Any,
) -> Record:
    """A good answer of one token an event, sent on its schedule; ``facts`` replace any field."""
    sent_ns = round(at_ms * MS)
    first_ns = sent_ns + round(ttft_ms * MS)
    record = Record(
        id=id,
        stage=0,
        status=Status.OK,
        scheduled_ns=sent_ns,
        ready_ns=sent_ns,
        started_ns=sent_ns,
        sent_ns=sent_ns,
        chunk_ns=[first_ns + round(i * itl_ms * MS) for i in range(tokens)],
        end_ns=first_ns + round((tokens - 1) * itl_ms * MS),
        prompt_tokens=32,
        output_tokens=tokens,
        requested_output_tokens=tokens,
        tokens_from=TokensFrom.SERVER,
        finish_reason="length",
        http_status=200,
        clock=Clock.KERNEL,
        text_head="The lighthouse keeper had",
    )
    return msgspec.structs.replace(record, **facts)


def make_context(num_prompts: int, arrivals: Arrivals | None = None, **circumstances: Any) -> StageContext:
    """A stage of ``num_prompts`` at 10 requests a second, unless told otherwise."""
    stage = Stage(name="steady", arrivals=arrivals or Constant(rate=10.0), num_prompts=num_prompts)
    return msgspec.structs.replace(StageContext(stage=stage), **circumstances)


def vllm_records(result: dict[str, Any]) -> list[Record]:
    """The per-request arrays of a vLLM result file as records: a success has a first token, a failure an error."""
    return [_vllm_record(result, i) for i in range(len(result["ttfts"]))]


def _vllm_record(result: dict[str, Any], i: int) -> Record:
    sent_ns = round(result["start_times"][i] * 1e9)
    chunk_ns = [sent_ns + round(result["ttfts"][i] * 1e9)]
    for gap_s in result["itls"][i]:
        chunk_ns.append(chunk_ns[-1] + round(gap_s * 1e9))
    good = not result["errors"][i]
    return Record(
        id=i,
        stage=0,
        status=Status.OK if good else Status.RESET,
        scheduled_ns=sent_ns if result.get("request_rate") != "inf" else None,
        sent_ns=sent_ns,
        chunk_ns=chunk_ns if good else [],
        end_ns=chunk_ns[-1] if good else None,
        prompt_tokens=result["input_lens"][i],
        output_tokens=result["output_lens"][i] if good else None,
        tokens_from=TokensFrom.SERVER if good else None,
        error=result["errors"][i] or None,
    )


def read_shared(name: str) -> dict[str, Any]:
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"{name} is not beside the repository (WITHSTAND_SHARED names its folder)")
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    result: dict[str, Any] = json.loads(text)
    return result


@pytest.fixture
def answer() -> Callable[..., Record]:
    return make_answer


@pytest.fixture
def context() -> Callable[..., StageContext]:
    return make_context


@pytest.fixture
def vllm_file() -> Callable[[str], tuple[dict[str, Any], list[Record]]]:
    def read(name: str) -> tuple[dict[str, Any], list[Record]]:
        result = read_shared(name)
        return result, vllm_records(result)

    return read
