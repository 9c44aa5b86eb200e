"""What a gateway's owner is told: outcomes, the log, stderr, and what it says of engines that fail."""

import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engines import DONE, END, EVENT, STREAM_HEAD, Behave, Engine, answering, chunk, stuck, whole
from gateways import PATIENCE_S, Gateway, body, get, model, post
from money import bearer, key, spends, toml
from withstand.errors import UsageError
from withstand.gateway.__main__ import run
from withstand.gateway.address import origin_of
from withstand.gateway.bulletin import Bulletin
from withstand.gateway.config import config_of
from withstand.gateway.engine import Engine as WithEngine
from withstand.gateway.preflight import preflight
from withstand.gateway.trouble import Trouble
from withstand.stack.ports import free_port

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]


def lines(gw: Gateway, log: Path) -> list[dict[str, Any]]:
    gw.stop()
    return [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (b"200 OK", "ok"),
        (b"400 Bad Request", "engine_refused"),
        (b"429 Too Many Requests", "engine_refused"),
        (b"500 Oh", "engine_error"),
        (b"502 Oh", "engine_error"),
        (b"503 Oh", "engine_error"),
    ],
)
def test_an_engines_error_is_not_ok(engine: Engines, gateway: Gateways, status: bytes, outcome: str) -> None:
    gw = gateway(model(engine(answering(whole(status=status))).url))
    gw.ask(body())
    told = (
        f'requests_total{{route="/v1/chat/completions",model="m",status="{status[:3].decode()}",outcome="{outcome}"}}'
    )
    assert gw.metrics()[told] == 1


@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        (b'data: {"error": {"message": "CUDA"}}\n\n', "engine_error"),
        (b'data: {"object":"error","message":"no"}\n\n', "engine_error"),
        (b'data: {"object":"error","error":1}\n\n', "engine_error"),
        (b'event: error\ndata: {"type":"error","error":{}}\n\n', "engine_error"),
        (b'data: {"choices":[{"delta":{"content":"\\ndata: {\\"error\\""}}],"error":null}\n\n', "ok"),
    ],
)
def test_an_error_event_in_a_stream_is_not_ok(
    engine: Engines, gateway: Gateways, tmp_path: Path, event: bytes, outcome: str
) -> None:
    said = [STREAM_HEAD, *[chunk(EVENT)] * 9, chunk(event), chunk(DONE), END]
    gw = gateway(f'[log]\npath = "{tmp_path}/log"\n' + model(engine(lambda talk, _: talk.say(*said)).url))
    assert gw.ask(body(stream=True)).status == 200
    (line,) = lines(gw, tmp_path / "log")
    assert (line["status"], line["outcome"]) == (200, outcome)


def test_the_queue_has_outcomes_of_its_own(engine: Engines, gateway: Gateways, tmp_path: Path) -> None:
    more = "max_in_flight = 1\nqueue = {requests = 1, wait_s = 0.2}"
    gw = gateway(f'[log]\npath = "{tmp_path}/log"\n' + model(engine(stuck()).url, more=more))
    gw.client().send(post(body()))
    gw.until("requests_in_flight", 1)
    waiting = gw.client().send(post(body()))
    gw.until("requests_in_flight", 2)
    assert gw.ask(body()).error["code"] == "queue_full"
    assert waiting.answer().error["code"] == "queue_timeout"
    told = [(line["outcome"], line["error"], line["attempts"]) for line in lines(gw, tmp_path / "log")]
    assert told[:2] == [("queue_full", "queue_full", 0), ("queue_timeout", "queue_timeout", 0)]


def test_who_is_cut_off_at_the_end_is_told_why(engine: Engines, gateway: Gateways, tmp_path: Path) -> None:
    gw = gateway(f'drain_s = 0.1\n[log]\npath = "{tmp_path}/log"\n' + model(engine(stuck()).url))
    client = gw.client().send(post(body()))
    gw.until("requests_in_flight", 1)
    gw.terminate()
    answer = client.answer()
    assert (answer.status, answer.error["code"]) == (503, "shutting_down")
    assert "shutting down" in answer.error["message"]
    (line,) = lines(gw, tmp_path / "log")
    assert (line["outcome"], line["error"]) == ("shut_down", "shutting_down")


def test_the_log_says_which_limit_and_why(engine: Engines, gateway: Gateways, tmp_path: Path) -> None:
    keys = key("alice", "sk-alice", "limits.rpm = 1")
    gw = gateway(f'[log]\npath = "{tmp_path}/log"\n' + keys + model(engine(answering()).url))
    for _ in range(2):
        refused = gw.ask(body(), more=bearer("sk-alice"))
    assert "may have 1 request in a minute" in refused.error["message"]
    good, limited = lines(gw, tmp_path / "log")
    assert (good["error"], good["limit"], good["reason"], good["attempts"]) == (None, None, None, 1)
    assert (limited["error"], limited["limit"], limited["attempts"]) == ("rate_limit_exceeded", "requests", 0)
    assert "try again" in limited["reason"]


def unready(gw: Gateway) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while gw.control("GET", "/ready")[0] != 503:
        assert time.monotonic() < end_s
        time.sleep(0.05)


def test_an_engine_that_is_not_there_is_told_everywhere_until_it_is(gateway: Gateways, tmp_path: Path) -> None:
    port = free_port()
    gw = gateway(f'[log]\npath = "{tmp_path}/log"\n' + model(f"http://127.0.0.1:{port}"))
    refused = gw.ask(body())
    assert refused.error["message"] == "No engine of `m` can be asked at present: connection refused."
    assert refused.header("x-withstand-engine") == f"127.0.0.1:{port}"
    (seat,) = gw.control("GET", "/admin/engines")[1]["m"]
    assert (seat["failing"], seat["trouble"], seat["url"]) == (True, "connection refused", f"http://127.0.0.1:{port}")
    unready(gw)
    time.sleep(0.6)  # a look at all engines
    with socket.create_server(("127.0.0.1", port)) as _:
        end_s = time.monotonic() + PATIENCE_S
        while gw.control("GET", "/ready")[0] != 200:
            assert time.monotonic() < end_s
            time.sleep(0.05)
        time.sleep(0.6)
        (line,) = lines(gw, tmp_path / "log")
    assert (line["error"], line["attempts"]) == ("no_engine", 1)
    assert "connection refused" in line["reason"]
    name = f"withstand: The engine 127.0.0.1:{port}"
    assert gw.told == [f"{name} cannot be reached: connection refused.\n", f"{name} works again.\n"]


@pytest.mark.parametrize("workers", [1, 3])
def test_an_engine_that_fails_a_check_after_a_request_does_not_work_again(
    engine: Engines, gateway: Gateways, nobody: str, workers: int
) -> None:
    """Of whichever worker is asked: one has found out, and one makes the checks."""
    one = engine(answering())
    more = 'policy = "round_robin"\nhealth = {every_s = 0.05, unhealthy = 100000}'
    gw = gateway(f"workers = {workers}\n" + model(nobody, one.url, more=more))
    while gw.control("GET", "/admin/engines")[1]["m"][0]["trouble"] is None:
        assert gw.ask(body()).status == 200
    checked = len(one.seen)
    end_s = time.monotonic() + PATIENCE_S
    while len(one.seen) < checked + 20:  # the other one is checked as often
        assert time.monotonic() < end_s
        time.sleep(0.05)
    for _ in range(4 * workers):
        seat = gw.control("GET", "/admin/engines")[1]["m"][0]
        assert (seat["failing"], seat["trouble"], seat["healthy"]) == (True, "connection refused", True)
    time.sleep(0.6)  # a look at all engines
    gw.stop()
    name = nobody.removeprefix("http://")
    assert gw.told == [f"withstand: The engine {name} cannot be reached: connection refused.\n"]


def test_less_to_say_of_an_engine_is_not_that_it_works() -> None:
    said: list[str] = []
    one, bulletin = WithEngine(origin_of("http://10.0.0.1:8000")), Bulletin(said.append)
    for at_s, trouble in enumerate((Trouble("connection refused", unreachable=True), Trouble("it answers 500"))):
        one.failed(at_s, trouble)
        bulletin.look([one], at_s)
    assert said == ["The engine 10.0.0.1:8000 cannot be reached: connection refused."]
    one.answered(200, 2.0)
    bulletin.look([one], 2.0)
    assert said[1:] == ["The engine 10.0.0.1:8000 works again."]


def test_other_reasons_have_their_words(gateway: Gateways) -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        urls = {"tls": f"https://127.0.0.1:{port}", "name": f"http://no.such.host.invalid:{port}"}
        gw = gateway("".join(model(url, name=name) for name, url in urls.items()))
        client = gw.client().send(post(body("tls")))
        other, _ = sock.accept()
        other.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        assert "should its url begin with http://?" in client.answer().error["message"]
        other.close()
    assert "name cannot be resolved" in gw.ask(body("name")).error["message"]


def test_an_engine_that_answers_with_errors_is_told_of(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(model(engine(answering(whole(status=b"500 Oh"))).url))
    for _ in range(3):
        gw.ask(body())
    assert gw.control("GET", "/admin/engines")[1]["m"][0]["trouble"] == "it answers 500"
    time.sleep(0.6)
    gw.stop()
    assert [line.partition(" fails: ")[2] for line in gw.told] == ["it answers 500.\n"]


def test_failed_health_checks_are_told_of(gateway: Gateways, nobody: str) -> None:
    gw = gateway(model(nobody, more="health = {every_s = 0.05, unhealthy = 2}"))
    unready(gw)
    time.sleep(0.6)
    gw.stop()
    assert [line.partition(" fails its health checks: ")[2] for line in gw.told] == ["connection refused.\n"]


def test_a_command_that_fails_is_told_of(gateway: Gateways, nobody: str, tmp_path: Path) -> None:
    command = '\ncommand = ["sh", "-c", "echo no such model. >&2; exit 1"]\n'
    gw = gateway(model(nobody).rstrip() + command + f'[host]\nstate = "{tmp_path}"\n')
    assert gw.ask(body()).error["code"] == "engine_not_started"
    assert "no such model" in gw.control("GET", "/admin/engines")[1]["m"][0]["trouble"]
    time.sleep(0.6)
    gw.stop()
    assert len(gw.told) == 1
    assert gw.told[0].endswith("no such model.\n")


def test_a_timeout_says_whose_it_was(engine: Engines, gateway: Gateways) -> None:
    one = engine(stuck())
    gw = gateway("timeouts.first_byte_s = 0.1\n" + model(one.url))
    late = gw.ask(body())
    assert (late.status, late.header("x-withstand-engine")) == (504, one.name)


def test_engines_that_nobody_may_ask_are_told_of(engine: Engines, gateway: Gateways) -> None:
    one, other = engine(answering()), engine(answering())
    gw = gateway(model(one.url, other.url))

    def why(*changes: dict[str, object]) -> str:
        for place, change in zip((one, other), changes, strict=False):
            assert gw.control("PATCH", "/admin/engines", {"model": "m", "url": place.name, **change})[0] == 200
        answer = gw.ask(body())
        assert (answer.status, answer.error["code"]) == (503, "no_engine")
        return str(answer.error["message"]).removeprefix("No engine of `m` can be asked at present: ")

    assert why({"draining": True}, {"draining": True}) == "all are draining."
    assert why({}, {"draining": False, "weight": 0}) == "all are draining or have weight 0."
    assert why({"draining": False, "weight": 0}) == "all have weight 0."
    for place in (one, other):
        assert gw.control("DELETE", f"/admin/engines?model=m&url={place.name}")[0] == 200
    assert why() == "it has none."


# What the control plane says.


def test_a_change_that_there_is_not_is_refused(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    gw = gateway(model(one.url))
    place = {"model": "m", "url": one.url}
    for method, field, meant in (("PATCH", "drainin", "draining"), ("POST", "wieght", "weight")):
        status, answer = gw.control(method, "/admin/engines", {**place, field: 1})
        cure = f"There is no field '{field}' (did you mean {meant}?); correct it, or leave it out."
        assert (status, answer["error"]["message"]) == (422, cure)
    status, seat = gw.control("PATCH", "/admin/engines", {"model": "m", "url": one.name, "draining": True})
    assert (status, seat["draining"], seat["url"]) == (200, True, one.url), "by its name too"


def test_a_body_that_is_not_said_to_be_json_is_told_so(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(model(engine(answering()).url))
    form = {"content-type": "application/x-www-form-urlencoded"}
    status, answer = gw.control("PATCH", "/admin/engines", {"model": "m"}, **form)
    assert (status, "content-type: application/json" in answer["error"]["message"]) == (415, True)


def test_engines_routes_are_asked_by_post(engine: Engines, gateway: Gateways) -> None:
    answer = gateway(model(engine(answering()).url)).client().send(get("/v1/chat/completions")).answer()
    assert (answer.status, answer.header("allow")) == (405, "POST")
    assert "POST" in answer.error["message"]


def test_health_is_not_known_before_a_check(gateway: Gateways, nobody: str) -> None:
    gw = gateway(model(more="health = {every_s = 3600}"))
    status, seat = gw.control("POST", "/admin/engines", {"model": "m", "url": nobody})
    assert (status, seat["healthy"]) == (201, None)


def test_metrics_may_be_kept_from_others(engine: Engines, gateway: Gateways) -> None:
    keys = key("root", "sk-root", "admin = true") + key("alice", "sk-alice")
    gw = gateway("open_metrics = false\n" + keys + model(engine(answering()).url))
    statuses = [gw.client().send(get("/metrics", more)).answer().status for more in ("", bearer("sk-alice"))]
    assert statuses == [401, 403]
    assert gw.client().send(get("/metrics", bearer("sk-root"))).answer().status == 200


def test_the_docs_need_nothing_from_elsewhere(engine: Engines, gateway: Gateways) -> None:
    page = gateway(model(engine(answering()).url)).client().send(get("/docs")).answer().raw.decode()
    assert "POST /v1/chat/completions" in page
    assert "Authorization: Bearer" in page
    assert "PATCH /admin/engines" in page
    assert "//" not in page.replace("<!doctype html>", "")


def test_a_key_sees_what_it_may_still_use(engine: Engines, gateway: Gateways, tmp_path: Path) -> None:
    terms = 'limits = { rpm = 3, concurrency = 2 }\nbudget = { usd = 1, per = "total" }'
    state = f'state = "{tmp_path}/usage.sqlite3"\n'
    gw = gateway(toml(engine(spends()).url, state, terms))
    gw.ask(body(), more=bearer("sk-alice"))
    status, told = gw.control("GET", "/v1/key", authorization="Bearer sk-alice")
    assert (status, told["key"], told["models"]) == (200, "alice", None)
    assert (told["limits"]["requests"]["limit"], told["limits"]["requests"]["remaining"]) == (3, 2)
    assert 0 < told["limits"]["requests"]["reset_s"] == round(told["limits"]["requests"]["reset_s"], 3)
    assert told["limits"]["concurrency"] == {"limit": 2, "remaining": 2}
    assert told["budget"] == {"usd": 1.0, "per": "total", "spent_usd": 0.02, "held_usd": 0.0}
    assert gw.control("GET", "/v1/key")[0] == 401
    assert (tmp_path / "usage.sqlite3").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("path", ["/rerank", "/v1/messages/count_tokens"])
def test_more_routes_go_to_engines(engine: Engines, gateway: Gateways, path: str) -> None:
    one = engine(answering())
    assert gateway(model(one.url)).ask(body(), path).status == 200
    assert one.seen[0].head.startswith(b"POST " + path.encode())


# The file.


ENGINE = '[[models.m.engines]]\nurl = "http://127.0.0.1:1"\n'


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('state = "{}/none/usage.sqlite3"', "there is no folder"),
        ('state = "{}"', "is a folder"),
        (f'state = "{{}}/{"n" * 300}/s"', "cannot be read: File name too long. Name another file."),
        (f'log.path = "{{}}/{"n" * 300}/l"', "cannot be read: File name too long. Choose another in [log]."),
        ('state = "{}/gateway.toml"', "not a database"),
        ('log.path = "{}/none/log"', "there is no folder"),
        (ENGINE + 'command = ["nosuchprog"]', "no program nosuchprog; install it"),
        (ENGINE + 'command = ["ls"]\nenv = {{PATH = "{}"}}', "`$.models.m.engines[0].command`"),
        (ENGINE + 'command = ["./nosuchprog"]\ncwd = "{}"', "gateway.toml is wrong: there is no program ./nosuchprog"),
        (
            ENGINE + 'command = ["ls"]\ncwd = "{}/none"',
            "/none; make it, or name another - at `$.models.m.engines[0].cwd`",
        ),
        (ENGINE + 'api_key_env = "WITHSTAND_NONE"', "`$.models.m.engines[0].api_key_env`"),
        (ENGINE + 'api_key_file = "{}/none"', "none cannot be read: No such file or directory - at"),
        ('listen = "192.0.2.1:0"\nopen = true', "Choose an address of this machine"),
        ("", None),
    ],
)
def test_check_refuses_what_a_start_would(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, said: str | None
) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(more.format(tmp_path) + ("" if ENGINE in more else "\n[models.m]\n"))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(SystemExit) as ended:
        run(["check", str(path)])
    assert ended.value.code == (2 if said else 0)
    assert (said or "The model 'm' has no engine") in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_check_takes_a_command_that_there_is_and_a_port_that_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, program = tmp_path / "gateway.toml", tmp_path / "program"
    program.touch(0o755)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f'listen = "127.0.0.1:{taken.getsockname()[1]}"\n'
        for command in (
            f'command = ["program"]\nenv = {{PATH = "{tmp_path}"}}\n',
            f'command = ["./program"]\ncwd = "{tmp_path}"',
        ):
            path.write_text(listen + ENGINE + command)
            with pytest.raises(SystemExit) as ended:
                run(["check", str(path)])
            assert ended.value.code == 0, capsys.readouterr().err


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1"])
def test_one_that_chose_its_own_port_does_not_either(tmp_path: Path, host: str, workers: int) -> None:
    gw = Gateway(tmp_path, f"workers = {workers}\n[models.m]\n")
    url = f"http://{host}:{gw.port}"
    status, answer = gw.control("POST", "/admin/engines", {"model": "m", "url": url})
    assert (status, answer["error"]["message"].startswith(f"{url} is this gateway itself; ")) == (400, True)
    path = tmp_path / "gateway.toml"
    path.write_text(f'listen = "127.0.0.1:0"\nworkers = {workers}\n' + model(url))
    status, answer = gw.control("POST", "/admin/reload", {})
    assert (status, f"{url} is this gateway itself" in answer["error"]["message"]) == (400, True)
    gw.stop()


def test_a_gateway_takes_itself_for_no_engine(tmp_path: Path) -> None:
    port = free_port()
    path = tmp_path / "gateway.toml"
    gw = Gateway(tmp_path, "[models.m]\n", listen=f"127.0.0.1:{port}")
    url = f"http://localhost:{port}"
    status, answer = gw.control("POST", "/admin/engines", {"model": "m", "url": url})
    assert (status, answer["error"]["message"].startswith(f"{url} is this gateway itself; ")) == (400, True)
    path.write_text(f'listen = "127.0.0.1:{port}"\n' + model(url))
    status, answer = gw.control("POST", "/admin/reload", {})
    assert (status, "is this gateway itself" in answer["error"]["message"]) == (400, True)
    assert gw.control("GET", "/admin/engines")[1] == {"m": []}
    gw.stop()


@pytest.mark.parametrize(
    ("more", "module", "extra"),
    [
        ("state = 'postgresql://h/d'", "psycopg", "gateway-postgres"),
        ("telemetry.otlp = 'http://h:1'", "opentelemetry.exporter.otlp.proto.http", "gateway-otel"),
    ],
)
def test_check_misses_extras(monkeypatch: pytest.MonkeyPatch, more: str, module: str, extra: str) -> None:
    monkeypatch.setattr("withstand.gateway.preflight.find_spec", lambda name: None if name == module else name)
    with pytest.raises(UsageError, match=extra):
        preflight(config_of(tomllib.loads(more + "\n[models.m]\n")))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_hangup_before_the_gateway_is_ready_does_not_end_it(tmp_path: Path, workers: int) -> None:
    """It is heard later, whenever it came; blocked from the first line on, as by the command line."""
    path = tmp_path / "gateway.toml"
    path.write_text(f'listen = "127.0.0.1:0"\nworkers = {workers}\n[models.m]\n')
    words = [sys.executable, "-m", "withstand.gateway", str(path)]
    first = "import os, signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP}); print(flush=True)"
    blocked = f"{first}; os.execv({words[0]!r}, {words!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", blocked], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    late = threading.Timer(3 * PATIENCE_S, process.kill)  # who says nothing is not waited for
    late.start()
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "\n"
    process.send_signal(signal.SIGHUP)
    assert "http://127.0.0.1" in process.stdout.readline()
    assert process.stderr.readline() == "withstand: The configuration was read again: 1 model, 0 engines, 0 keys.\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=PATIENCE_S)[1] == ""
    late.cancel()
    assert process.returncode == 0
