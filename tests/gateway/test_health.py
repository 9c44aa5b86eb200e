"""Engines that fail their health checks get nothing new, and come back by them: processes that die, hang, refuse."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from engines import END, EVENT, STREAM_HEAD, Behave, Engine, Seen, Talk, answering, chunk, whole
from gateways import PATIENCE_S, Gateway, body, model, post
from withstand.gateway.checkup import Checkup
from withstand.gateway.config import Health

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]
OFTEN = "health = {every_s = 0.05, timeout_s = 1.0, unhealthy = 2, healthy = 2}"

PROGRAM = """
import pathlib, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(503 if pathlib.Path(sys.argv[2]).exists() else 200)
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.answer(200)
    def answer(self, status):
        self.send_response(status)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *_): pass

server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


class Served:
    """An engine in a process of its own; it is sick while ``flag`` exists."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.flag = folder / "sick"
        command = [sys.executable, "-c", PROGRAM, str(port), str(self.flag)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}"
        self.name = f"127.0.0.1:{self.port}"

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[[int], Served]]:
    made: list[Served] = []

    def make(port: int = 0) -> Served:
        made.append(Served(tmp_path, port))
        return made[-1]

    yield make
    for each in made:
        each.end()


def is_well(gw: Gateway, engine: Served | Engine, *, well: bool) -> None:
    gw.until(f'engine_healthy{{engine="{engine.name}"}}', well)


def until(holds: Callable[[], object]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def checks(engine: Engine) -> list[bytes]:
    return [seen.head.split()[1] for seen in engine.seen if seen.head.startswith(b"GET")]


def with_health(status: list[bytes]) -> Behave:
    """Whose page of health says what ``status`` holds now."""

    def behave(talk: Talk, seen: Seen) -> None:
        talk.say(whole(status=status[0]) if seen.head.startswith(b"GET /health") else whole())

    return behave


# Processes.


@pytest.mark.parametrize("how", ["killed", "hung", "503"])
def test_who_fails_gets_nothing_new_and_comes_back(
    how: str, served: Callable[[int], Served], engine: Engines, gateway: Gateways
) -> None:
    one, other = served(0), engine(answering())
    gw = gateway(model(one.url, other.url, more=OFTEN + '\npolicy = "round_robin"\nwarm_up_s = 0'))
    is_well(gw, one, well=True)
    if how == "killed":
        one.end()
    elif how == "hung":
        one.process.send_signal(signal.SIGSTOP)
    else:
        one.flag.touch()
    is_well(gw, one, well=False)
    for _ in range(6):
        answer = gw.ask(body())
        assert (answer.status, answer.header("x-withstand-engine")) == (200, other.name)
    seats = {seat["engine"]: seat for seat in gw.control("GET", "/admin/engines")[1]["m"]}
    assert (seats[one.name]["healthy"], seats[other.name]["healthy"]) == (False, True)
    assert gw.metrics()["failovers_total"] == 0
    if how == "killed":
        served(one.port)
    elif how == "hung":
        one.process.send_signal(signal.SIGCONT)
    else:
        one.flag.unlink()
    is_well(gw, one, well=True)
    assert {gw.ask(body()).header("x-withstand-engine") for _ in range(6)} == {one.name, other.name}


def test_its_streams_go_on_and_where_nobody_is_left_it_is_asked_all_the_same(
    engine: Engines, gateway: Gateways
) -> None:
    status, going = [b"200 OK"], []

    def behave(talk: Talk, seen: Seen) -> None:
        if seen.head.startswith(b"GET"):
            talk.say(whole(status=status[0]))
            return
        talk.say(STREAM_HEAD, chunk(EVENT))
        until(lambda: going)
        talk.say(chunk(EVENT), END)

    one = engine(behave)
    gw = gateway(model(one.url, more=OFTEN))
    client = gw.client().send(post(body(stream=True)))
    client.read_until(EVENT)
    status[0] = b"500 Internal Server Error"
    is_well(gw, one, well=False)
    assert gw.control("GET", "/ready")[0] == 503
    going.append(True)
    answer = client.answer()
    assert answer.complete
    assert answer.raw.endswith(chunk(EVENT) + END)
    assert gw.client().send(post(body(stream=True))).answer().raw == answer.raw


@pytest.mark.parametrize("dies", [False, True])
def test_where_the_others_are_ill_they_are_asked_after_those_that_are_not(
    served: Callable[[int], Served], engine: Engines, gateway: Gateways, *, dies: bool
) -> None:
    ill, one = engine(with_health([b"500 No"])), served(0)
    gw = gateway(model(one.url, ill.url, more=OFTEN.replace("unhealthy = 2", "unhealthy = 1")))
    is_well(gw, ill, well=False)
    is_well(gw, one, well=True)
    if dies:
        one.end()
    answers = [gw.ask(body()) for _ in range(4)]
    assert {answer.status for answer in answers} == {200}
    assert {answer.header("x-withstand-engine") for answer in answers} == {ill.name if dies else one.name}


@pytest.mark.parametrize(
    ("health", "models", "well"), [(b"404 Not Found", b"200 OK", 1), (b"404 Not Found", b"404 Not Found", 1),
                                   (b"405 No", b"503 No", 0), (b"401 Unauthorized", b"503 No", 1)],
)  # fmt: skip
def test_an_engine_without_the_page_is_asked_for_its_models(
    health: bytes, models: bytes, well: int, engine: Engines, gateway: Gateways
) -> None:
    def behave(talk: Talk, seen: Seen) -> None:
        talk.say(whole(status=health if seen.head.startswith(b"GET /health") else models))

    one = engine(behave)
    gw = gateway(model(one.url, more=OFTEN))
    until(lambda: len(checks(one)) > 6)
    is_well(gw, one, well=bool(well))
    assert (b"/v1/models" in checks(one)) == (health != b"401 Unauthorized")


# Who is asked, and how often.


def test_nobody_is_asked_unless_it_is_said(engine: Engines, gateway: Gateways) -> None:
    asked, left = engine(answering()), engine(answering())
    gw = gateway(model(asked.url, left.url, more=OFTEN) + "health = false\n")
    until(lambda: len(checks(asked)) > 3)
    assert not checks(left)
    assert f'engine_healthy{{engine="{left.name}"}}' not in gw.metrics()


def test_a_reload_changes_the_interval_and_ends_the_checks(engine: Engines, gateway: Gateways, tmp_path: Path) -> None:
    status = [b"503 No"]
    one = engine(with_health(status))
    gw = gateway(model(one.url, more="health = {every_s = 3600, unhealthy = 1}"))
    path = tmp_path / "gateway.toml"
    head = path.read_text().partition("\n")[0]

    def reload(more: str) -> None:
        path.write_text(f"{head}\n{model(one.url, more=more)}")
        assert gw.control("POST", "/admin/reload")[0] == 200

    assert not checks(one)
    reload("health = {every_s = 0.05, unhealthy = 1}")
    is_well(gw, one, well=False)
    assert gw.control("GET", "/ready")[0] == 503
    reload("")
    until(lambda: gw.control("GET", "/ready")[0] == 200)
    seen = len(checks(one))
    time.sleep(0.3)
    assert len(checks(one)) <= seen + 1  # one may have been under way


def test_workers_have_one_view_and_check_once(engine: Engines, gateway: Gateways) -> None:
    status = [b"200 OK"]
    one = engine(with_health(status))
    began_s = time.monotonic()
    gw = gateway("workers = 3\n" + model(one.url, more="health = {every_s = 0.4, unhealthy = 1, healthy = 1}"))
    until(lambda: len(checks(one)) >= 4)
    assert len(checks(one)) <= (time.monotonic() - began_s) / 0.4 + 2  # three workers on their own make thrice as many
    status[0] = b"503 No"
    is_well(gw, one, well=False)
    assert {gw.control("GET", "/ready")[0] for _ in range(20)} == {503}  # whichever worker is met
    status[0] = b"200 OK"
    is_well(gw, one, well=True)
    until(lambda: {gw.control("GET", "/ready")[0] for _ in range(20)} == {200})


def test_an_engine_that_sleeps_is_not_asked(gateway: Gateways, tmp_path: Path, nobody: str) -> None:
    program = tmp_path / "engine.py"
    program.write_text(PROGRAM)
    port = nobody.rpartition(":")[2]
    command = [sys.executable, str(program), port, str(tmp_path / "sick")]
    more = f'command = {command}\nidle_s = 0.5\nready = "/health"\n'
    gw = gateway(f'[host]\nstate = "{tmp_path}"\n' + model(nobody, more=OFTEN) + more)
    name = nobody.removeprefix("http://")
    time.sleep(0.3)
    assert gw.metrics()[f'engine_healthy{{engine="{name}"}}'] == 1
    assert gw.ask(body()).status == 200
    gw.until(f'engine_up{{engine="{name}"}}', 0)  # idle, and asleep: checks do not keep it awake
    time.sleep(0.3)
    assert gw.metrics()[f'engine_healthy{{engine="{name}"}}'] == 1
    assert gw.ask(body()).status == 200


# Pure.


def checkup() -> Checkup:
    return Checkup([0], [0], [0.0], [0], bytearray(160))


def test_so_many_in_a_row_change_what_is_held() -> None:
    told, one = Health(unhealthy=3, healthy=2), checkup()
    seen = []
    for well in (False, False, True, False, False, False, True, False, True, True, True):
        one.found(told, "" if well else "it answers 503")
        seen.append(one.is_ill)
    assert seen == [False] * 5 + [True] * 4 + [False] * 2


def test_first_checks_are_spread_and_the_rest_keep_the_interval() -> None:
    told = Health(every_s=10.0)
    firsts = []
    for n in range(50):
        one = checkup()
        ticks_s = (tick / 10 for tick in range(1000, 1600))
        due = [now_s for now_s in ticks_s if one.is_due(now_s, told, f"10.0.0.{n}:8000")]
        firsts.append(due[0])
        assert all(9.9 <= b - a <= 10.2 for a, b in pairwise(due))
    assert max(firsts) - min(firsts) > 7
    assert len({round(first) for first in firsts}) > 6
