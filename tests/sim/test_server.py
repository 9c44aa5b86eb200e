"""The simulated engine as a process: its routes, its metrics, prefill and decode apart."""

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from withstand.record import Seen
from withstand.wire.engine_metrics import read_engine


@contextmanager
def simulated(*changes: str) -> Iterator[str]:
    """Its base URL."""
    told = [word for change in changes for word in ("--set", change)]
    argv = [sys.executable, "-m", "withstand.testing.sim", "--port", "0", "--model", "toy", *told]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[2]
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def asked(url: str, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request(method, path, None if body is None else msgspec.json.encode(body))
    answer = connection.getresponse()
    status, data = answer.status, answer.read()
    connection.close()
    return status, data


def completed(url: str, **body: object) -> dict[str, Any]:
    status, data = asked(url, "POST", "/v1/completions", {"model": "simulated-toy", "prompt": "a b c d", **body})
    assert status == 200
    answer: dict[str, Any] = msgspec.json.decode(data)
    return answer


def test_a_chat_template_is_counted_and_a_completion_has_none() -> None:
    with simulated("template_tokens=30") as url:
        chat = {"model": "simulated-toy", "messages": [{"role": "user", "content": "a b c d"}], "max_tokens": 1}
        told = msgspec.json.decode(asked(url, "POST", "/v1/chat/completions", chat)[1])
        assert told["usage"]["prompt_tokens"] == 34
        assert completed(url, max_tokens=1)["usage"]["prompt_tokens"] == 4


def seen(url: str) -> dict[Seen, float]:
    engine, values = read_engine(asked(url, "GET", "/metrics")[1].decode())
    assert engine == "vLLM"
    return values


def until(url: str, seen_: Seen, value: float) -> None:
    give_up_s = time.monotonic() + 60
    while seen(url).get(seen_) != value:
        assert time.monotonic() < give_up_s
        time.sleep(0.01)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with simulated("step_ms=1", "sequence_ms=0", "prefill_token_ms=0", "block_tokens=2", "kv_blocks=500") as url:
        yield url


def test_its_tokens_are_counted(server: str) -> None:
    def said() -> float:
        page = asked(server, "GET", "/metrics")[1].decode()
        return float(next(line.split()[-1] for line in page.splitlines() if line.startswith("vllm:generation_tokens")))

    before = said()
    assert completed(server, max_tokens=7)["usage"]["completion_tokens"] == 7
    assert said() == before + 7


def test_it_is_an_engine_that_says_what_it_is(server: str) -> None:
    assert asked(server, "GET", "/health")[0] == 200
    assert b'"simulated-toy"' in asked(server, "GET", "/v1/models")[1]
    assert b"withstand_simulated" in asked(server, "GET", "/metrics")[1]
    assert asked(server, "POST", "/v1/completions", {"model": "toy", "prompt": "a"})[0] == 404
    status, said = asked(
        server, "POST", "/v1/completions", {"model": "simulated-toy", "prompt": "a", "max_tokens": 9999}
    )
    assert status == 400
    assert b"maximum context length is 1000 tokens" in said


def test_tokens_are_exact_streamed_or_not(server: str) -> None:
    assert completed(server, max_tokens=7)["usage"]["completion_tokens"] == 7
    body = {"model": "simulated-toy", "messages": [{"role": "user", "content": "a b"}], "max_tokens": 7, "stream": True}
    _, said = asked(server, "POST", "/v1/chat/completions", body | {"stream_options": {"include_usage": True}})
    events = [line[6:] for line in said.split(b"\n") if line.startswith(b"data: ")]
    assert events[-1] == b"[DONE]"
    chunks = [msgspec.json.decode(event) for event in events[:-1]]
    words = [
        c["choices"][0]["delta"]["content"] for c in chunks if c["choices"] and c["choices"][0]["delta"]["content"]
    ]
    assert len(words) == 7
    assert chunks[-1]["usage"]["completion_tokens"] == 7
    assert {chunk["model"] for chunk in chunks} == {"simulated-toy"}


def test_a_prefix_is_found_again(server: str) -> None:
    prompt = "this prefix has been here before"
    first, again = (completed(server, prompt=prompt, max_tokens=1)["usage"] for _ in range(2))
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    assert again["prompt_tokens_details"]["cached_tokens"] == 4  # of six in three blocks; one token is always computed


def test_prefill_hands_over_and_decode_computes_no_prompt(server: str) -> None:
    handle = completed(server, max_tokens=1, kv_transfer_params={"do_remote_decode": True})["kv_transfer_params"]
    assert handle["do_remote_prefill"] is True
    with simulated("step_ms=1", "prefill_token_ms=300", "transfer_ms=1") as decode:
        completed(decode, max_tokens=2, kv_transfer_params=handle)
        assert seen(decode)[Seen.PREFILL_S] == pytest.approx(0.301)  # one token of four, in the engine's own time


def test_who_leaves_is_dropped_and_gives_its_room_back(server: str) -> None:
    connection = HTTPConnection(urlsplit(server).netloc, timeout=60)
    body = {"model": "simulated-toy", "prompt": "a", "max_tokens": 900, "stream": True}
    connection.request("POST", "/v1/completions", msgspec.json.encode(body))
    until(server, Seen.RUNNING, 1)
    connection.close()
    until(server, Seen.RUNNING, 0)
    assert seen(server)[Seen.KV_SHARE] == 0


def test_who_has_no_slot_waits() -> None:
    with simulated("max_sequences=1", "step_ms=50", "sequence_ms=0") as url, ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(completed, url, max_tokens=8) for _ in range(3)]
        until(url, Seen.WAITING, 2)
        assert seen(url)[Seen.RUNNING] == 1
        assert [answer.result()["usage"]["completion_tokens"] for answer in answers] == [8, 8, 8]


def test_wrong_parameters_are_one_sentence() -> None:
    argv = [sys.executable, "-m", "withstand.testing.sim", "--port", "0", "--set", "stepms=1"]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("withstand: --set: ")
    assert "step_ms" in ended.stderr
