"""The server as its users know it: a process, an address, a log that is true, and no orphan."""

import itertools
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from withstand.errors import MeasureError, UsageError
from withstand.testing import Schedule, TruthServer
from withstand.testing.certs import make_certificates
from withstand.testing.truth import tally
from withstand.testing.truth.config import Config
from withstand.testing.truth.listener import listen

GENEROUS_NS = 150_000_000


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")  # where nobody reaps orphans, a dead one stays as a zombie
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


# The log.


def test_the_log_is_monotone_and_as_scheduled(client: Any, tools: Any) -> None:
    body = tools.body_of(max_tokens=12)
    client.post("/v1/chat/completions", body, X_Request_Id="mine", X_Truth="ttft=40,itl=5")
    (served,) = client.server.truth()
    assert served.request_id == "mine"
    assert (served.path, served.model, served.status) == ("/v1/chat/completions", "truth", 200)
    assert (served.tokens, served.tokens_planned, served.prompt_tokens, served.prompt_chars) == (12, 12, 3, 13)
    times = [served.accepted_ns, served.arrival_ns, served.complete_ns, served.first_write_ns, *served.token_ns]
    assert all(a <= b for a, b in itertools.pairwise([*times, served.done_ns]))
    for index, token_ns in enumerate(served.token_ns):
        late_ns = token_ns - (served.complete_ns + 40_000_000 + index * 5_000_000)
        assert 0 <= late_ns < GENEROUS_NS
    assert served.aborted_ns is None
    assert served.late_ns_max < GENEROUS_NS


def test_numbers_for_people(client: Any) -> None:
    client.chat(pace="ttft=40,itl=5")
    (served,) = client.server.truth()
    assert served.ttft_ms == pytest.approx(40, abs=100)
    assert served.tpot_ms == pytest.approx(5, abs=30)
    assert served.e2el_ms == pytest.approx(served.ttft_ms + 5 * served.tpot_ms)


def test_the_jittered_schedule_is_the_one_of_the_seed(client: Any) -> None:
    from withstand.testing.truth.schedule import offsets_ns  # noqa: PLC0415 - beside its use

    client.chat(pace="ttft=30,itl=10,jitter=exp,seed=5")
    (served,) = client.server.truth()
    due_ns = offsets_ns(Schedule(30, 10, jitter="exp", seed=5), 6, served.number)
    lateness_ns = [told - served.started_ns - due for told, due in zip(served.token_ns, due_ns, strict=True)]
    assert all(0 <= late_ns < GENEROUS_NS for late_ns in lateness_ns)


def test_connections_and_their_requests_are_counted(client: Any, tools: Any) -> None:
    with client.connect() as sock:
        for _ in range(3):
            assert client.exchange(sock, tools.body_of()).message.complete
    client.chat()
    log = client.server.truth()
    assert [served.connection_request for served in log] == [0, 1, 2, 0]
    assert len({served.connection for served in log}) == 2
    assert [served.number for served in log] == [0, 1, 2, 3]


def test_pipelined_requests_are_answered_in_turn(client: Any, tools: Any) -> None:
    with client.connect() as sock:
        request = tools.request_bytes("/v1/chat/completions", tools.body_of(stream=False))
        sock.sendall(request * 3)
        sock.settimeout(5)
        raw = b""
        while raw.count(b'"chat.completion"') < 3:
            raw += sock.recv(65536)
    first, second, third = client.server.truth()
    assert first.done_ns <= second.first_write_ns
    assert second.done_ns <= third.first_write_ns


def test_a_client_that_leaves_is_noticed_at_once(client: Any, tools: Any, wait_for: Callable[..., Any]) -> None:
    with client.connect() as sock:
        sock.sendall(tools.request_bytes("/v1/chat/completions", tools.body_of(), X_Truth="ttft=20,itl=20,n=500"))
        while b'"t0"' not in sock.recv(65536):
            pass
    served = wait_for(lambda: next((s for s in client.server.truth() if s.aborted_ns), None))
    assert served.done_ns is None
    assert 1 <= served.tokens < 500
    assert served.aborted_ns - served.token_ns[-1] < GENEROUS_NS
    tokens = served.tokens
    assert client.chat().message.complete
    assert client.server.truth()[0].tokens == tokens


def test_a_client_that_does_not_read_is_seen_as_blocking(client: Any, tools: Any) -> None:
    with client.connect() as sock:
        body = tools.body_of()
        sock.sendall(tools.request_bytes("/v1/chat/completions", body, X_Truth="behaviour=tool_calls:3000000"))
        time.sleep(0.3)
        assert client.server.truth()[0].done_ns is None
        sock.settimeout(5)
        tail = b""
        while not tail.endswith(b"\r\n0\r\n\r\n"):
            tail = (tail + sock.recv(1 << 20))[-16:]
    (served,) = client.server.truth()
    assert served.tokens == 6
    assert served.blocked_ns > 100_000_000
    assert served.token_ns[-1] > served.complete_ns + 200_000_000


def test_the_log_can_be_emptied_and_numbers_begin_again(client: Any) -> None:
    client.chat()
    client.server.reset()
    assert client.server.truth() == []
    client.chat()
    assert [served.number for served in client.server.truth()] == [0]


def test_the_log_can_be_had_over_http_too(client: Any) -> None:
    client.chat()
    told = json.loads(client.post("/truth", None).message.body)
    assert [served["tokens_planned"] for served in told] == [6]
    assert client.post("/truth/reset", {}).message.status == 200
    assert client.server.truth() == []


# What is asked for.


@pytest.mark.parametrize(
    ("fields", "header", "tokens", "behaviour"),
    [
        ({}, "", 6, "plain"),
        ({"max_completion_tokens": 9}, "", 9, "plain"),
        ({"max_tokens": 9}, "n=3", 3, "plain"),
        ({"model": "truth:ttft=1,itl=1,n=4,behaviour=crlf"}, "", 4, "crlf"),
        ({"model": "truth:n=4,behaviour=crlf"}, "n=5,behaviour=gzip", 5, "gzip"),
        ({"model": "llama3.2:1b"}, "", 6, "plain"),
        ({"max_tokens": 9}, "stop_after=7", 7, "plain"),
        ({"max_tokens": 9, "ignore_eos": True}, "stop_after=7", 9, "plain"),
    ],
)
def test_header_before_model_before_server(
    client: Any, tools: Any, fields: dict[str, Any], header: str, tokens: int, behaviour: str
) -> None:
    client.post("/v1/chat/completions", tools.body_of(**fields), X_Truth=header)
    (served,) = client.server.truth()
    assert (served.tokens, served.behaviour) == (tokens, behaviour)


@pytest.mark.parametrize(
    ("fields", "header", "named"),
    [
        ({}, "nonsense=1", "'nonsense' is unknown"),
        ({}, "ttft=soon", "ttft='soon'"),
        ({}, "behaviour=nonsense", "'nonsense' is unknown"),
        ({}, "ttft=-1", "schedule.ttft_ms"),
        ({"max_tokens": "many"}, "", "$.max_tokens"),
    ],
)
def test_what_cannot_be_understood_is_a_400_that_says_so(
    client: Any, tools: Any, fields: dict[str, Any], header: str, named: str
) -> None:
    message = client.post("/v1/chat/completions", tools.body_of(**fields), X_Truth=header).message
    assert message.status == 400
    assert named in json.loads(message.body)["error"]["message"]
    assert client.server.truth()[0].status == 400


def test_bytes_that_are_no_http_get_a_400(client: Any, tools: Any) -> None:
    with client.connect() as sock:
        sock.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        assert tools.listen(sock).message.status == 400


def test_expect_continue_is_answered(client: Any, tools: Any) -> None:
    head, _, payload = tools.request_bytes("/v1/chat/completions", tools.body_of(), Expect="100-continue").partition(
        b"\r\n\r\n"
    )
    with client.connect() as sock:
        sock.sendall(head + b"\r\n\r\n")
        sock.settimeout(5)
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(payload)
        assert tools.listen(sock).message.status == 200


def test_whoever_wants_the_connection_closed_gets_it_closed(client: Any, tools: Any) -> None:
    with client.connect() as sock:
        heard = client.exchange(sock, tools.body_of(), Connection="close")
        assert heard.message.headers["connection"] == "close"
        assert sock.recv(1) == b""


# Other endpoints.


def test_models_health_and_what_is_not_there(client: Any) -> None:
    models = json.loads(client.post("/v1/models", None).message.body)
    assert [model["id"] for model in models["data"]] == ["truth"]
    assert client.post("/health", None).message.status == 200
    assert client.post("/nowhere", None).message.status == 404
    assert client.server.truth() == []


@pytest.mark.parametrize("body", [{"prompt": "a b  c\n"}, {"content": "a b c"}, {"messages": [{"content": "a b c"}]}])
def test_tokens_are_words(client: Any, body: dict[str, Any]) -> None:
    told = json.loads(client.post("/tokenize", body).message.body)
    assert told["count"] == len(told["tokens"]) == 3
    assert len(set(told["tokens"])) == 3


def test_the_counts_agree_with_the_tokens_of_the_text(client: Any) -> None:
    for behaviour in ("plain", "multibyte", "error_text_as_content"):
        heard = client.chat(behaviour)
        told = json.loads(client.post("/tokenize", {"prompt": heard.text}).message.body)
        assert told["count"] == client.server.truth()[-1].tokens


def test_prompts_of_token_ids_are_counted(client: Any) -> None:
    for prompt, tokens in (([1, 2, 3, 4], 4), ([[1, 2], [3]], 3), (["a b", "c"], 3)):
        client.complete(prompt=prompt)
        assert client.server.truth()[-1].prompt_tokens == tokens


def test_keys_models_and_bodies(client_of: Callable[..., Any], tools: Any) -> None:
    options: dict[str, Any] = {"api_key": "secret", "models": ("truth", "other"), "keep_bodies": True}
    with TruthServer(Schedule(1, 1, 3), **options) as server:
        client = client_of(server)
        assert client.chat().message.status == 401
        assert client.post("/v1/models", None).message.status == 401
        assert client.post("/health", None).message.status == 200
        key = {"Authorization": "Bearer secret"}
        unknown = client.post("/v1/chat/completions", tools.body_of(model="gpt"), **key).message
        assert unknown.status == 404
        assert "`gpt` does not exist" in json.loads(unknown.body)["error"]["message"]
        body = tools.body_of(model="other", extra=[1])
        assert client.post("/v1/chat/completions", body, **key).message.status == 200
        log = server.truth()
    assert [served.status for served in log] == [401, 404, 200]
    assert log[-1].body == body


# Shares and slots.


def test_a_mixture_meets_exactly_the_counts_that_were_foretold(client_of: Callable[..., Any]) -> None:
    mix = {"plain": 0.6, "http_500": 0.3, "limited": 0.1}
    with TruthServer(Schedule(1, 0, 2), behaviour=mix, seed=4) as server:
        client = client_of(server)
        statuses = Counter(client.post("/v1/completions", {"prompt": "x"}).message.status for _ in range(25))
        met = Counter(served.behaviour for served in server.truth())
    wanted = tally(mix, 4, 25)
    assert met == wanted
    assert statuses == {200: wanted["plain"], 500: wanted["http_500"], 429: wanted["limited"]}


def test_slots_serve_so_many_at_once_and_the_others_in_order(client_of: Callable[..., Any], tools: Any) -> None:
    with TruthServer(Schedule(ttft_ms=150, itl_ms=10, tokens=5), slots=2) as server:
        client = client_of(server)
        socks = [client.connect() for _ in range(6)]
        for sock in socks:
            sock.sendall(tools.request_bytes("/v1/chat/completions", tools.body_of()))
        for sock in socks:
            assert tools.listen(sock).message.complete
            sock.close()
        log = server.truth()
    started = [served.started_ns for served in log]
    assert started == sorted(started)
    service_ns = 190_000_000
    assert started[2:] == [first_ns + turn * service_ns for turn in (1, 2) for first_ns in started[:2]]


def test_in_a_batch_an_answer_is_slower_by_those_that_are_under_way_when_it_begins(
    client_of: Callable[..., Any], tools: Any
) -> None:
    with TruthServer(Schedule(ttft_ms=60, itl_ms=20, tokens=6), batch=0.5) as server:
        client = client_of(server)
        socks = [client.connect() for _ in range(3)]
        for sock in socks:
            sock.sendall(tools.request_bytes("/v1/chat/completions", tools.body_of()))
        for sock in socks:
            assert tools.listen(sock).message.complete
            sock.close()
        log = server.truth()
    assert [round((served.tpot_ms or 0) / 10) for served in log] == [2, 3, 4]


def test_whoever_leaves_the_queue_takes_no_slot(client_of: Callable[..., Any], tools: Any) -> None:
    with TruthServer(Schedule(ttft_ms=150, itl_ms=0, tokens=1), slots=1) as server:
        client = client_of(server)
        first, second, third = (client.connect() for _ in range(3))
        for sock in (first, second, third):
            sock.sendall(tools.request_bytes("/v1/chat/completions", tools.body_of()))
        second.close()
        assert tools.listen(first).message.complete
        assert tools.listen(third).message.complete
        first.close()
        third.close()
        served, left, last = server.truth()
    assert left.started_ns is None
    assert left.aborted_ns
    assert last.started_ns == served.started_ns + 150_000_000


# Addresses.


@pytest.mark.parametrize("family", ["ipv4", "ipv6", "unix"])
def test_every_family_of_addresses(family: Any, client_of: Callable[..., Any]) -> None:
    with TruthServer(Schedule(1, 1, 3), family=family) as server:
        start = {"ipv4": "http://127.0.0.1:", "ipv6": "http://[::1]:", "unix": "unix:/"}[family]
        assert server.base_url.startswith(start)
        assert client_of(server).chat().text == "t0 t1 t2"
    if family == "unix":
        assert not Path(server.base_url.removeprefix("unix:")).exists()


@pytest.mark.parametrize("behaviour", ["plain", "http10", "bytewise", "premature_close", "reset"])
def test_tls(behaviour: str, client_of: Callable[..., Any], tmp_path: Path) -> None:
    files = make_certificates(tmp_path)
    with TruthServer(Schedule(1, 1, 4), tls=files.server, behaviour=behaviour) as server:
        assert server.base_url.startswith("https://")
        heard = client_of(server, str(files.ca)).post("/v1/completions", {"prompt": "x", "stream": True})
        (served,) = server.truth()
    whole = behaviour not in {"premature_close", "reset"}
    assert heard.text == ("t0 t1 t2 t3" if whole else "t0 t1")
    assert heard.message.complete == whole
    assert served.tokens == (4 if whole else 2)


def test_a_client_that_speaks_no_tls_harms_nobody(client_of: Callable[..., Any], tmp_path: Path) -> None:
    files = make_certificates(tmp_path)
    with TruthServer(Schedule(1, 1, 4), tls=files.server) as server:
        client_of(server).chat(patience_s=0.3)
        assert client_of(server, str(files.ca)).chat().message.complete


def test_a_busy_port_is_one_sentence(client: Any) -> None:
    port = int(client.server.base_url.rpartition(":")[2])
    with pytest.raises(UsageError, match=f"{port} cannot be listened on"), TruthServer(port=port):
        pass


def test_files_that_are_no_certificate_are_one_sentence(tmp_path: Path) -> None:
    missing = tmp_path / "cert.pem"
    with pytest.raises(UsageError, match="is missing"), TruthServer(tls=(missing, missing)):
        pass


# Life and death.


def test_nothing_is_left_behind() -> None:
    with TruthServer() as server:
        pid = server.pid
        assert pid
        assert runs(pid)
    assert not runs(pid)
    with pytest.raises(MeasureError, match="does not run"):
        server.truth()


def test_a_server_that_died_is_one_sentence(wait_for: Callable[..., Any]) -> None:
    with TruthServer() as server:
        assert server.pid
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(MeasureError, match="has ended by itself"):
            server.truth()


def test_a_server_that_died_in_the_middle_of_its_log_is_one_sentence(client_of: Callable[..., Any]) -> None:
    """The log is longer than the pipe holds, so that the server waits in the middle of it."""
    with TruthServer(Schedule(1, 0, 10_000)) as server:
        client_of(server).chat(max_tokens=10_000, pace="ttft=1,itl=0")
        assert server.pid
        assert server._process
        server._process.stdin.write(b"truth\n")
        server._process.stdin.flush()
        assert select.select([server._process.stdout], [], [], 10)[0]
        os.kill(server.pid, signal.SIGKILL)
        os.waitid(
            os.P_PID, server.pid, os.WEXITED | os.WNOWAIT
        )  # once we read, it could go on writing until it is gone
        with pytest.raises(MeasureError, match="has ended by itself"):
            server.truth()


PARENT = """
import os, time
from withstand.testing import TruthServer
with TruthServer() as server:
    if FORK and os.fork() == 0:
        time.sleep(10)
        os._exit(0)
    print(server.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("fork", [False, True])
def test_the_server_ends_when_its_parent_is_killed(fork: bool, wait_for: Callable[..., Any]) -> None:
    """With a fork, another child of the parent holds a copy of the pipe open."""
    code = PARENT.replace("FORK", str(fork))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert runs(pid)
        parent.kill()
        parent.wait()
        try:
            wait_for(lambda: not runs(pid))
        finally:
            if fork:
                os.killpg(parent.pid, signal.SIGKILL)


def test_ctrl_c_is_the_parents_business(client_of: Callable[..., Any]) -> None:
    with TruthServer(Schedule(1, 1, 3)) as server:
        assert server.pid
        os.kill(server.pid, signal.SIGINT)
        assert client_of(server).chat().message.complete


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_server_for_people(end: signal.Signals, client_of: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    command = [sys.executable, "-m", "withstand.testing.truth", "--unix", str(path), "--tokens", "4", "--ttft-ms", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        line = process.stdout.readline()
        assert line.startswith(f"truth server unix:{path} pid={process.pid}")

        class Address:
            base_url = f"unix:{path}"

        assert client_of(Address).chat().text == "t0 t1 t2 t3"
        process.send_signal(end)
        assert process.wait(5) == 0
    assert not path.exists()


def test_a_socket_that_a_killed_server_left_is_replaced(tmp_path: Path) -> None:
    """One on which somebody listens is not, nor is a file that is no socket."""
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    config = Config(unix_path=str(path))
    with listen(config), pytest.raises(UsageError, match="cannot be listened on"):
        listen(config)
    path.unlink()
    path.write_text("mine")
    with pytest.raises(UsageError, match="cannot be listened on"):
        listen(config)
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--behaviour", "nonsense"], "'nonsense' is unknown"),
        (["--behaviour", "plain=0.9,hang=x"], "--behaviour: "),
        (["--itl-ms", "-1"], "schedule.itl_ms"),
        (["--port", "99999"], "port: 99999"),
        (["--slots", "0"], "slots: 0"),
    ],
)
def test_bad_options_are_one_sentence(options: list[str], named: str) -> None:
    command = [sys.executable, "-m", "withstand.testing.truth", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_an_endless_share_is_refused() -> None:
    with pytest.raises(UsageError, match="must be multiples"):
        tally({"plain": math.inf, "http_500": 1.0}, 4, 25)
