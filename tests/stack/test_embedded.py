"""The real engine: up, answering as the documentation says, and gone whatever happens."""

import http.client
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from withstand.errors import EngineError
from withstand.record import Seen
from withstand.stack import EngineInfo, embedded_engine
from withstand.stack.model import SMOLLM2
from withstand.wire.engine_metrics import read_engine

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("xllamacpp", "gguf", "numpy")),
        reason="the extra `engine` is not installed",
    ),
]

ANOTHER_PROCESS = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is born deaf to it
from pathlib import Path
from withstand.stack import embedded_engine
with embedded_engine(lambda *_: None, Path(sys.argv[1]), parallel=1, context=512) as engine:
    try:
        print(engine.pid, engine.base_url, flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.stdin.readline()
print("down", flush=True)
"""

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineInfo]:
    log = tmp_path_factory.mktemp("engine") / "engine.log"
    with embedded_engine(lambda *_: None, log, parallel=2, context=1024) as up:
        yield up


def ask(base_url: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=30)
    try:
        connection.request("POST" if body else "GET", path, json.dumps(body) if body else None)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def chat(engine: EngineInfo, **fields: Any) -> dict[str, Any]:
    body = {"model": engine.model, "messages": QUESTION, "temperature": 0, **fields}
    status, answer = ask(engine.base_url, "/v1/chat/completions", body)
    assert status == 200
    return json.loads(answer)


def output_tokens(answer: dict[str, Any]) -> int:
    return answer["usage"]["completion_tokens"]


def port_of(base_url: str) -> int:
    return urlsplit(base_url).port


def test_it_says_what_it_is(engine: EngineInfo) -> None:
    assert engine.name.startswith("llama.cpp (xllamacpp ")
    assert engine.context == 512
    assert engine.parallel == 2
    assert 1 <= engine.threads <= 8
    listed = json.loads(ask(engine.base_url, "/v1/models")[1])["data"]
    assert [m["id"] for m in listed] == [engine.model]


def test_its_metrics_are_understood(engine: EngineInfo) -> None:
    status, answer = ask(engine.base_url, "/metrics")
    assert status == 200
    name, values = read_engine(answer.decode())
    assert name == "llama.cpp"
    assert values == {Seen.RUNNING: 0, Seen.WAITING: 0}


def test_it_knows_the_capital_of_france(engine: EngineInfo) -> None:
    answer = chat(engine, max_completion_tokens=32)["choices"][0]
    assert "Paris" in answer["message"]["content"]
    assert answer["finish_reason"] == "stop"


def test_lengths_are_exact_when_eos_is_ignored(engine: EngineInfo) -> None:
    assert output_tokens(chat(engine, max_completion_tokens=24, ignore_eos=True)) == 24
    assert output_tokens(chat(engine, max_tokens=24, ignore_eos=True)) == 24
    assert output_tokens(chat(engine, max_tokens=8, max_completion_tokens=24, ignore_eos=True)) == 24


def test_min_tokens_is_not_heeded(engine: EngineInfo) -> None:
    assert output_tokens(chat(engine, max_tokens=40, min_tokens=30)) < 30


def test_no_prompt_helps_the_next(engine: EngineInfo) -> None:
    answers = [chat(engine, max_tokens=2) for _ in range(3)]
    assert [a["usage"]["prompt_tokens_details"]["cached_tokens"] for a in answers] == [0, 0, 0]


def test_a_request_may_ask_for_the_cache_itself(engine: EngineInfo) -> None:
    answers = [chat(engine, max_tokens=2, cache_prompt=True) for _ in range(4)]
    assert answers[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


def test_a_stream_has_one_event_a_token_and_the_usage_when_asked(engine: EngineInfo) -> None:
    body = {
        "messages": QUESTION,
        "temperature": 0,
        "max_tokens": 6,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    _, stream = ask(engine.base_url, "/v1/chat/completions", body)
    lines = [line.removeprefix(b"data: ") for line in stream.split(b"\n\n") if line.strip()]
    assert lines.pop() == b"[DONE]"
    events = [json.loads(line) for line in lines]
    assert len([e for e in events if e["choices"] and e["choices"][0]["delta"].get("content")]) == 6
    assert events[-1]["usage"]["completion_tokens"] == 6


def test_more_than_it_has_room_for_wait_their_turn(engine: EngineInfo) -> None:
    with ThreadPoolExecutor(8) as users:
        answers = list(users.map(lambda _: chat(engine, max_tokens=4, ignore_eos=True), range(8)))
    assert [output_tokens(a) for a in answers] == [4] * 8


def test_it_counts_tokens_and_shows_its_metrics(engine: EngineInfo) -> None:
    tokens = json.loads(ask(engine.base_url, "/tokenize", {"content": "Hello, world"})[1])["tokens"]
    assert len(tokens) == 3
    assert b"llamacpp:prompt_tokens_total" in ask(engine.base_url, "/metrics")[1]


def test_a_prompt_beyond_the_context_is_refused_in_words(engine: EngineInfo) -> None:
    status, answer = ask(engine.base_url, "/v1/completions", {"prompt": "word " * 600, "max_tokens": 1})
    assert status == 400
    assert "exceeds the available context size (512 tokens)" in json.loads(answer)["error"]["message"]


def test_after_the_block_no_process_and_no_port_is_left(
    tmp_path: Path, gone: Callable[..., bool], port: int, progress: Any
) -> None:
    with embedded_engine(progress, tmp_path / "engine.log", 1, port=port, context=512) as up:
        assert up.base_url == f"http://127.0.0.1:{port}"
    assert gone(up.pid, port, within_s=0.5)
    assert progress[-2:] == [("Starting the engine", 0, None), ("Starting the engine", 1, 1)]


def test_a_busy_port_is_one_sentence(tmp_path: Path, engine: EngineInfo) -> None:
    taken = port_of(engine.base_url)
    with pytest.raises(EngineError, match=f"Port {taken} of 127.0.0.1 is in use"):
        embedded_engine(lambda *_: None, tmp_path / "engine.log", port=taken).__enter__()


def test_a_file_that_llama_cpp_cannot_read_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "junk.gguf").write_bytes(b"GGUF" + bytes(100))
    monkeypatch.setenv("WITHSTAND_MODEL", str(tmp_path / "junk.gguf"))
    with pytest.raises(EngineError, match=r"^The embedded engine ended at its start .*: error loading model: .*"):
        embedded_engine(lambda *_: None, tmp_path / "engine.log", 1, context=512).__enter__()


def test_too_little_memory_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meminfo").write_text("MemAvailable: 100000 kB\n")
    monkeypatch.setattr("withstand.stack.machine.MEMINFO", tmp_path / "meminfo")
    with pytest.raises(EngineError, match=r"The embedded engine needs 1\.5 GB of memory and 0\.1 GB are available"):
        embedded_engine(lambda *_: None, tmp_path / "engine.log").__enter__()


def test_the_model_is_the_one_that_we_know(engine: EngineInfo) -> None:
    stamp = json.loads(engine.model_file.with_suffix(".json").read_text())
    assert (stamp["source_sha256"], stamp["sha256"]) == (SMOLLM2.sha256, engine.sha256)


@pytest.fixture
def another(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    argv = [sys.executable, "-c", ANOTHER_PROCESS, str(tmp_path / "engine.log")]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        pid, base_url = process.stdout.readline().split()
        yield process, int(pid), port_of(base_url)
        process.kill()


def test_a_parent_that_is_killed_takes_the_engine_along(
    another: tuple[subprocess.Popen[str], int, int], gone: Callable[..., bool]
) -> None:
    process, pid, port = another
    process.kill()
    assert gone(pid, port, within_s=5)


def test_ctrl_c_leaves_the_engine_to_answer_until_the_block_ends(
    another: tuple[subprocess.Popen[str], int, int], gone: Callable[..., bool]
) -> None:
    process, pid, port = another
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert ask(f"http://127.0.0.1:{port}", "/v1/completions", {"prompt": "Hi", "max_tokens": 2})[0] == 200
    process.stdin.write("drained\n")
    process.stdin.close()
    assert process.stdout.readline() == "down\n"
    assert gone(pid, port, within_s=0.5)
