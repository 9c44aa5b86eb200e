"""Several processes as one gateway: one view of the load, one administration, and a death that costs only its own."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from engines import END, EVENT, STREAM_HEAD, Behave, Engine, Seen, Talk, answering, chunk, silent, stuck, whole
from gateways import Client, Gateway, body, model, post
from money import bearer, key
from withstand.gateway.workers.board import Board, Cell
from withstand.gateway.workers.history import with_change
from withstand.gateway.workers.pages import lasting, together
from withstand.gateway.workers.words import Lines, Make, Scrape, Tell, line_of

Engines = Callable[[Behave], Engine]
TWO = "workers = 2\n"


class Crew(Gateway):
    """A gateway with workers, and which of them a connection has reached."""

    def pids(self) -> list[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return sorted(map(int, path.read_text().split()))

    def holder(self, client: Client) -> int:
        """The worker that a connection has reached."""
        name = client.sock.getsockname()
        found = f":{self.port:04X} 0100007F:{name[1]:04X} 01 "
        inode = next(line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines() if found in line)
        for pid in self.pids():
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(entry.readlink()) == f"socket:[{inode}]":
                        return pid
        raise AssertionError("nobody has accepted it")

    def client_of(self, pid: int) -> Client:
        """A connection to that worker; the system deals them out by lot."""
        for _ in range(500):
            client = self.client()
            client.send(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n").answer()
            if self.holder(client) == pid:
                return client
            client.close()
        raise AssertionError("that worker gets no connections")

    def each(self) -> list[Client]:
        """A connection to each worker."""
        return [self.client_of(pid) for pid in self.pids()]


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Callable[[str], Crew]]:
    made: list[Crew] = []

    def make(toml: str) -> Crew:
        made.append(Crew(tmp_path, TWO + toml))
        return made[-1]

    yield make
    for each in made:
        each.stop()
        assert each.process.returncode == 0


def wait_for(holds: Callable[[], object]) -> None:
    ready = threading.Event()
    for _ in range(1000):
        if holds():
            return
        ready.wait(0.01)
    raise AssertionError("it never came to that")


# What they share.


def test_a_workers_death_takes_only_its_own_requests(engine: Engines, crew: Callable[[str], Crew]) -> None:
    going = threading.Event()

    def behave(talk: Talk, seen: Seen) -> None:
        talk.say(STREAM_HEAD, chunk(EVENT))
        going.wait(20)
        talk.say(chunk(EVENT), END)

    one = engine(behave)
    gw = crew(model(one.url))
    pids = gw.pids()
    clients = gw.each()
    for client in clients:
        client.send(post(body(stream=True))).read_until(EVENT)
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 2)
    os.kill(pids[0], signal.SIGKILL)
    assert not clients[0].answer().complete
    wait_for(lambda: len(set(gw.pids()) - {pids[0]}) == 2)  # whoever comes earlier may meet the dead one's socket
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 1)
    going.set()
    answer = clients[1].answer()
    assert answer.complete
    assert answer.raw.endswith(chunk(EVENT) + END)
    assert gw.client_of(next(pid for pid in gw.pids() if pid not in pids)).send(post(body())).answer().status == 200
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 0)
    said = gw.stop()
    assert re.search(rf"Worker 0 \(pid {pids[0]}\) was ended by signal 9, .* it is started again\.", said)


def test_least_inflight_sees_what_other_workers_have_sent(engine: Engines, crew: Callable[[str], Crew]) -> None:
    one, two = engine(silent), engine(answering())
    gw = crew(model(one.url))
    first, second = gw.each()
    first.send(post(body()))
    wait_for(lambda: one.seen)
    assert gw.control("POST", "/admin/engines", {"model": "m", "url": two.url, "weight": 1})[0] == 201
    gw.until(f'engine_load{{engine="{two.name}"}}', 0)
    for _ in range(20):
        assert second.send(post(body())).answer().header("x-withstand-engine") == two.name
    first.close()


def test_max_in_flight_is_of_all_workers(engine: Engines, crew: Callable[[str], Crew]) -> None:
    one = engine(silent)
    gw = crew(model(one.url, more="max_in_flight = 1"))
    first, second = gw.each()
    first.send(post(body()))
    wait_for(lambda: one.seen)
    assert second.send(post(body())).answer().status == 503
    first.close()
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 0)


def test_a_failing_engine_is_left_alone_by_all_workers(
    engine: Engines, crew: Callable[[str], Crew], nobody: str
) -> None:
    good = engine(answering())
    gw = crew(model(nobody, good.url, more='policy = "round_robin"'))
    first, second = gw.each()
    for _ in range(8):
        assert first.send(post(body())).answer().status == 200
    told = second.send(b"GET /admin/engines HTTP/1.1\r\nhost: x\r\n\r\n").answer().json["m"]
    assert [seat["failing"] for seat in told] == [True, False]


def test_limits_hold_for_all_workers_together(engine: Engines, crew: Callable[[str], Crew]) -> None:
    gw = crew(key("alice", "sk-a", "limits = { rpm = 5 }") + model(engine(answering()).url))
    first, second = gw.each()
    said = post(body(), more=bearer("sk-a"))
    answers = [client.send(said).answer() for _ in range(4) for client in (first, second)]
    assert [answer.status for answer in answers] == [200] * 5 + [429] * 3
    assert [answer.header("x-ratelimit-remaining-requests") for answer in answers[:5]] == list("43210")


def test_concurrency_holds_for_all_workers_together(engine: Engines, crew: Callable[[str], Crew]) -> None:
    one = engine(silent)
    gw = crew(key("alice", "sk-a", "limits = { concurrency = 1 }") + model(one.url))
    said = post(body(), more=bearer("sk-a"))
    first, second = gw.each()
    first.send(said)
    wait_for(lambda: one.seen)
    assert second.send(said).answer().status == 429
    first.close()


# One administration.


def seats_of(client: Client) -> dict[str, tuple[float, bool]]:
    told = client.send(b"GET /admin/engines HTTP/1.1\r\nhost: x\r\n\r\n").answer().json["m"]
    return {seat["engine"]: (seat["weight"], seat["draining"]) for seat in told}


def test_changes_reach_all_workers_and_those_who_come_later(engine: Engines, crew: Callable[[str], Crew]) -> None:
    one, two = engine(answering()), engine(answering())
    gw = crew(model(one.url))
    for told in ({"url": two.url}, {"url": two.url}):
        status, answer = gw.control("POST", "/admin/engines", {"model": "m", **told})
        assert status == 201 or "serves 'm' already" in answer["error"]["message"]
    gw.control("PATCH", "/admin/engines", {"model": "m", "url": two.url, "weight": 3})
    gw.control("PATCH", "/admin/engines", {"model": "m", "url": two.url, "draining": True})
    gw.control("DELETE", f"/admin/engines?model=m&url={one.url}")
    expected = {two.name: (3.0, True)}
    for client in gw.each():
        wait_for(lambda client=client: seats_of(client) == expected)  # type: ignore[misc]
    pids = gw.pids()
    os.kill(pids[1], signal.SIGKILL)
    wait_for(lambda: len(set(gw.pids()) - set(pids)) == 1)
    new = (set(gw.pids()) - set(pids)).pop()
    assert seats_of(gw.client_of(new)) == expected


@pytest.mark.parametrize("by_signal", [True, False])
def test_another_file_reaches_all_workers_and_those_who_come_later(
    engine: Engines, crew: Callable[[str], Crew], tmp_path: Path, by_signal: bool
) -> None:
    one, two = engine(answering()), engine(answering())
    gw = crew(model(one.url))
    gw.control("PATCH", "/admin/engines", {"model": "m", "url": one.url, "weight": 3})
    (tmp_path / "gateway.toml").write_text('listen = "127.0.0.1:0"\n' + TWO + model(two.url))
    if by_signal:
        gw.process.send_signal(signal.SIGHUP)
    else:
        assert gw.control("POST", "/admin/reload", {})[0] == 200
    expected = {two.name: (1.0, False)}
    for client in gw.each():
        wait_for(lambda client=client: seats_of(client) == expected)  # type: ignore[misc]
    pids = gw.pids()
    os.kill(pids[1], signal.SIGKILL)
    wait_for(lambda: len(set(gw.pids()) - set(pids)) == 1)
    new = (set(gw.pids()) - set(pids)).pop()
    assert seats_of(gw.client_of(new)) == expected


def test_each_workers_metrics_are_those_of_all(engine: Engines, crew: Callable[[str], Crew]) -> None:
    one = engine(answering())
    gw = crew(model(one.url))
    name = 'requests_total{route="/v1/chat/completions",model="m",status="200",outcome="ok"}'
    for i, client in enumerate(gw.each(), start=1):
        client.send(post(body())).answer()
        for other in gw.each():
            page = other.send(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").answer().raw.decode()
            assert f"withstand_gateway_{name} {i}\n" in page
    pids = gw.pids()
    os.kill(pids[0], signal.SIGKILL)
    wait_for(lambda: len(set(gw.pids()) - set(pids)) == 1)
    gw.until(name, 2)


def test_request_ids_differ_between_workers(engine: Engines, crew: Callable[[str], Crew]) -> None:
    gw = crew(model(engine(answering()).url))
    ids = [client.send(post(body())).answer().header("x-request-id") for client in gw.each() for _ in range(5)]
    assert len(set(ids)) == 10


# Beginning and ending.


def test_sigterm_lets_all_workers_end_what_they_have(engine: Engines, crew: Callable[[str], Crew]) -> None:
    going = threading.Event()

    def behave(talk: Talk, seen: Seen) -> None:
        going.wait(20)
        talk.say(whole())

    one = engine(behave)
    gw = crew(model(one.url))
    clients = [client.send(post(body())) for client in gw.each()]
    wait_for(lambda: len(one.seen) == 2)
    gw.terminate()
    going.set()
    assert [client.answer().status for client in clients] == [200, 200]
    assert gw.process.wait(10) == 0


def test_a_second_sigterm_does_not_wait(engine: Engines, crew: Callable[[str], Crew]) -> None:
    one = engine(stuck(STREAM_HEAD, chunk(EVENT)))
    gw = crew(model(one.url))
    clients = [client.send(post(body(stream=True))) for client in gw.each()]
    for client in clients:
        client.read_until(EVENT)
    gw.terminate()
    wait_for(lambda: _refused(gw))
    gw.terminate()
    assert gw.process.wait(10) == 0
    assert all(b'data: {"error"' in client.answer().raw for client in clients)


def _refused(gw: Gateway) -> bool:
    try:
        gw.client()
    except ConnectionRefusedError:
        return True
    return False


def test_workers_end_with_their_foreman(engine: Engines, tmp_path: Path) -> None:
    gw = Crew(tmp_path, TWO + model(engine(answering()).url))
    pids = gw.pids()
    gw.process.kill()
    gw.process.wait(10)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    gw.stop()


@pytest.mark.parametrize(
    ("toml", "word"),
    [('api_key_env = "NO_SUCH_KEY"', "NO_SUCH_KEY"), ("", "cannot be listened on")],
)
def test_what_cannot_begin_says_so_once(tmp_path: Path, toml: str, word: str) -> None:
    with contextlib.ExitStack() as stack:
        listen = "listen = '127.0.0.1:0'\n"
        if not toml:
            other = Crew(tmp_path, TWO + "[models.m]\n")
            stack.callback(other.stop)
            listen = f"listen = '127.0.0.1:{other.port}'\n"
        path = tmp_path / "w.toml"
        path.write_text(TWO + listen + model("http://127.0.0.1:9") + toml)
        done = subprocess.run(
            [sys.executable, "-m", "withstand.gateway", str(path)],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    assert done.returncode == (2 if toml else done.returncode) != 0
    assert done.stderr.count("withstand: ") == 1
    assert word in done.stderr


@pytest.mark.parametrize("workers", ["", TWO])
def test_a_port_that_is_taken_is_told_of_in_plain_words(tmp_path: Path, workers: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        path = tmp_path / "g.toml"
        path.write_text(f"{workers}listen = '{address}'\n" + model("http://127.0.0.1:9"))
        command = [sys.executable, "-m", "withstand.gateway", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2
    assert f"{address} cannot be listened on: address already in use. Choose another" in done.stderr


# Pure parts.


def test_a_board_adds_up_and_forgets_the_dead() -> None:
    board = Board(3)
    rows = []
    for worker in range(3):
        board.as_worker(worker)
        rows.append(board.row("engine a"))
        board.row("engine b").add(Cell.UNDER_WAY, 100)
        rows[-1].add(Cell.UNDER_WAY, worker + 1)
        rows[-1].add(Cell.HELD_NUSD, -worker)
    assert [row.total(Cell.UNDER_WAY) for row in rows] == [6, 6, 6]
    assert [row.mine(Cell.UNDER_WAY) for row in rows] == [1, 2, 3]
    rows[0].failures[0], rows[0].until_s[0] = 3, 1.5
    board.forget(1)
    assert (rows[0].total(Cell.UNDER_WAY), rows[0].total(Cell.HELD_NUSD)) == (4, -2)
    assert (rows[2].failures[0], rows[2].until_s[0]) == (3, 1.5)
    assert board.row("engine b").total(Cell.UNDER_WAY) == 200


def test_pages_add_up_but_for_what_each_sees_whole() -> None:
    def page(total: float, whole: float) -> str:
        head = "# HELP {0} t\n# TYPE {0} {1}\n"
        return (
            head.format("w_requests_total", "counter")
            + f'w_requests_total{{a="b c"}} {total}\n'
            + head.format("w_engine_in_flight", "gauge")
            + f"w_engine_in_flight {whole}\n"
            + head.format("w_gateway_compiled", "gauge")
            + "w_gateway_compiled 1\n"
        )

    both = together(page(1, 7), [page(2.5, 7)])
    assert both == page(3.5, 7)
    assert "in_flight" not in lasting([both])
    assert 'w_requests_total{a="b c"} 3.5' in lasting([both])


def change(kind: str, **told: object) -> Make:
    return Make(0, 0, kind, msgspec.json.encode({"model": "m", "url": "u", **told}).decode())


def test_a_history_is_as_short_as_it_can_be() -> None:
    made: list[Make] = []
    for _ in range(100):
        for each in (change("add"), change("change", weight=1, draining=None), change("change", draining=True)):
            made = with_change(made, each)
        assert [each.kind for each in made][-2:] == ["add", "change"]
        assert '"weight":1' in made[-1].told
        assert '"draining":true' in made[-1].told
        made = with_change(made, change("remove"))
    assert [each.kind for each in made] == ["remove"]


def test_words_survive_any_cut() -> None:
    data = line_of(Scrape(7)) + line_of(Tell())
    for cut in range(len(data)):
        lines = Lines()
        assert [*lines.feed(data[:cut]), *lines.feed(data[cut:])] == [Scrape(7), Tell()]
