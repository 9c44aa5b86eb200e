"""The gateway as a process: where the system allows no thread, at its end, and without the terminal it began on."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

import pytest

from engines import Behave, Engine, answering, silent
from forked import Forked
from gateways import PATIENCE_S, Client, Gateway, body, get, model, post
from hosted import Hosted
from money import key

Engines = Callable[[Behave], Engine]
Make = Callable[[str], Gateway]
READ = "withstand: The configuration was read again: 1 model, 1 engine, 0 keys.\n"
LIMITED = """
import os, threading
start = threading.Thread.start
def limited(self):
    if os.path.exists({flag!r}):
        raise RuntimeError("can't start new thread")
    start(self)
threading.Thread.start = limited
"""


class Alone(Gateway):
    """Not forked from another process: imported with what ``folder`` has in Python's way."""

    def __init__(self, folder: Path, toml: str, stderr: int | IO[str] = subprocess.PIPE) -> None:
        paths = filter(None, (str(folder), os.environ.get("PYTHONPATH")))
        env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}

        def start(path: str) -> Forked:
            words = [sys.executable, "-m", "withstand.gateway", path]
            started = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=stderr, text=True, env=env)
            return cast("Forked", started)

        super().__init__(folder, toml, start=start)

    def says(self) -> str:
        return self.process.stderr.readline()

    def end(self) -> tuple[int | None, str]:
        said = self.stop()
        return self.process.returncode, said


@pytest.fixture
def limit(tmp_path: Path) -> Path:
    """As long as it is there, no gateway of this test gets a thread."""
    flag = tmp_path / "no-threads"
    flag.touch()
    (tmp_path / "sitecustomize.py").write_text(LIMITED.format(flag=str(flag)))
    return flag


@pytest.fixture
def threadless(limit: Path) -> Iterator[Make]:
    made: list[Alone] = []

    def make(toml: str) -> Gateway:
        made.append(Alone(limit.parent, toml))
        return made[-1]

    yield make
    for each in made:
        assert each.end() == (0, "")


@pytest.mark.parametrize("workers", [1, 2])
def test_where_there_may_be_no_thread_the_file_is_read_again(engine: Engines, threadless: Make, workers: int) -> None:
    gw = threadless(f"workers = {workers}\n" + model(engine(answering()).url))
    assert gw.control("POST", "/admin/reload", {})[0] == 200
    assert gw.process.stderr.readline() == READ
    for _ in range(2):
        gw.process.send_signal(signal.SIGHUP)
        assert gw.process.stderr.readline() == READ
    assert gw.ask(body()).status == 200


def test_an_engine_of_ours_lives_and_ends_where_there_may_be_no_thread(threadless: Make, tmp_path: Path) -> None:
    gw = threadless(f"[host]\nstate = '{tmp_path / 'state'}'\n[models.m]\n" + Hosted(tmp_path / "e").toml())
    assert gw.ask(body()).status == 200


def test_without_a_thread_there_are_no_traces_but_answers(engine: Engines, limit: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra gateway-otel is not installed")
    gw = Alone(limit.parent, '[telemetry]\notlp = "http://127.0.0.1:9"\n' + model(engine(answering()).url))
    assert gw.ask(body()).status == 200
    code, said = gw.end()
    assert code == 0
    assert said.startswith("withstand: No traces are sent, ")
    assert said.count("\n") == 1


def test_a_reload_that_goes_wrong_as_nobody_foresaw_is_told_and_the_next_one_works(
    engine: Engines, tmp_path: Path
) -> None:
    flag = tmp_path / "wrong"
    (tmp_path / "sitecustomize.py").write_text(
        "import os, tomllib\nloads = tomllib.loads\n"
        f"def odd(text):\n    if os.path.exists({str(flag)!r}):\n        raise LookupError('odd')\n"
        "    return loads(text)\ntomllib.loads = odd\n"
    )
    gw = Alone(tmp_path, model(engine(answering()).url))
    flag.touch()
    told = "The configuration cannot be read again: LookupError('odd')."
    status, answer = gw.control("POST", "/admin/reload", {})
    assert (status, answer["error"]["message"]) == (500, told)
    assert gw.says() == f"withstand: {told}\n"
    gw.process.send_signal(signal.SIGHUP)
    assert gw.says() == f"withstand: {told}\n"
    flag.unlink()
    gw.process.send_signal(signal.SIGHUP)
    assert gw.says() == READ
    assert gw.end() == (0, "")


def test_whoever_asks_for_a_reload_stderr_says_what_came_of_it(engine: Engines, gateway: Make, tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    gw = gateway(model(engine(answering()).url) + key("alice", "sk-a", "admin = true"))
    good = file.read_text()
    file.write_text("no TOML")
    assert gw.control("POST", "/admin/reload", {}, Authorization="Bearer sk-a")[0] == 400
    assert gw.process.stderr.readline().startswith("withstand: The configuration stays as it was. ")
    file.write_text(good[: good.index("[keys")])
    assert gw.control("POST", "/admin/reload", {}, Authorization="Bearer sk-a")[0] == 200
    assert gw.process.stderr.readline() == READ.replace("keys.", "keys; no key is asked for any more.")
    assert gw.control("POST", "/admin/reload", {})[0] == 200
    assert gw.process.stderr.readline() == READ


@pytest.mark.parametrize("workers", [1, 2])
def test_what_the_end_waits_for_is_told_once(engine: Engines, tmp_path: Path, workers: int) -> None:
    gw = Gateway(tmp_path, f"workers = {workers}\ndrain_s = 60\n" + model(engine(silent).url))
    clients = [gw.client().send(post(body(stream=True))) for _ in range(3)]
    gw.until("requests_in_flight", 3)
    gw.terminate()
    said = gw.process.stderr.readline()
    assert said.startswith("withstand: 3 requests are waited for, at most 59.")
    assert said.endswith(" s; a second signal ends the gateway at once.\n")
    gw.terminate()
    assert gw.process.communicate(PATIENCE_S)[1] == ""
    assert gw.process.returncode == 0
    for client in clients:
        client.close()


def test_an_end_with_nothing_to_wait_for_says_nothing(engine: Engines, gateway: Make) -> None:
    gw = gateway(model(engine(silent).url))
    gw.client().send(get("/health")).answer()
    gw.terminate()
    assert gw.process.communicate(PATIENCE_S)[1] == ""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_hangup_reloads_until_the_terminal_is_gone(engine: Engines, tmp_path: Path, workers: int) -> None:
    ours, its = os.openpty()
    gw = Alone(tmp_path, f"workers = {workers}\n" + model(engine(answering()).url), its)
    os.close(its)
    with os.fdopen(ours) as terminal:
        gw.process.send_signal(signal.SIGHUP)
        assert terminal.readline() == READ
        assert gw.ask(body()).status == 200
    gw.process.send_signal(signal.SIGHUP)
    assert gw.process.wait(PATIENCE_S) == 0
    gw.process.stdout.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_who_is_told_need_not_read(engine: Engines, tmp_path: Path, workers: int) -> None:
    unread, its = os.pipe()
    os.set_blocking(its, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(its, b"x" * 4096)
    os.set_blocking(its, True)
    gw = Alone(tmp_path, f"workers = {workers}\n" + model(engine(answering()).url), its)
    os.close(its)
    for _ in range(3):
        assert gw.control("POST", "/admin/reload", {})[0] == 200
    assert gw.ask(body()).status == 200
    gw.process.send_signal(signal.SIGHUP)
    gw.terminate()
    assert gw.process.wait(PATIENCE_S) == 0
    gw.process.stdout.close()
    os.close(unread)


@pytest.mark.parametrize("workers", [1, 2])
def test_stdin_and_stderr_may_be_closed(engine: Engines, tmp_path: Path, workers: int) -> None:
    def start(path: str) -> Forked:
        words = ["sh", "-c", 'exec "$@" <&- 2>&-', "sh", sys.executable, "-m", "withstand.gateway", path]
        return cast("Forked", subprocess.Popen(words, stdout=subprocess.PIPE, text=True))

    gw = Gateway(tmp_path, f"workers = {workers}\n" + model(engine(answering()).url), start=start)
    assert gw.control("POST", "/admin/reload", {})[0] == 200
    assert gw.ask(body()).status == 200
    gw.terminate()
    assert gw.process.wait(PATIENCE_S) == 0
    gw.process.stdout.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_reload_that_goes_wrong_while_it_is_made_loses_no_worker(
    engine: Engines, tmp_path: Path, workers: int
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os\nopened = os.open\n"
        "def odd(path, *more, **named):\n    if str(path).endswith('odd.log'):\n        raise LookupError('odd')\n"
        "    return opened(path, *more, **named)\nos.open = odd\n"
    )
    gw = Alone(tmp_path, f"workers = {workers}\n" + model(engine(answering()).url))
    with (tmp_path / "gateway.toml").open("a") as file:
        file.write(f"[log]\npath = '{tmp_path / 'odd.log'}'\n")
    told = "The configuration cannot be read again: LookupError('odd')."
    for _ in range(2):
        status, answer = gw.control("POST", "/admin/reload", {})
        assert (status, answer["error"]["message"]) == (500, told)
        assert gw.says() == f"withstand: {told}\n"
    for _ in range(8):
        assert gw.ask(body()).status == 200
    assert gw.end() == (0, "")


@pytest.mark.parametrize("workers", [1, 2])
def test_an_end_while_the_file_is_read_shows_no_traceback(engine: Engines, tmp_path: Path, workers: int) -> None:
    gw = Alone(tmp_path, f"workers = {workers}\n" + model(engine(answering()).url))
    file = tmp_path / "gateway.toml"
    file.unlink()
    os.mkfifo(file)  # whoever reads it waits for who writes
    client = gw.client().send(b"POST /admin/reload HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n")
    time.sleep(0.3)  # it is read
    client.close()
    assert gw.end() == (0, "")


def test_a_worker_that_hangs_is_killed_after_the_second_signal(engine: Engines, tmp_path: Path) -> None:
    gw = Alone(tmp_path, "workers = 2\ndrain_s = 600\n" + model(engine(answering()).url))
    hanging = Path(f"/proc/{gw.process.pid}/task/{gw.process.pid}/children").read_text().split()[0]
    os.kill(int(hanging), signal.SIGSTOP)
    for _ in range(2):
        gw.terminate()
        time.sleep(0.2)
    assert gw.process.wait(PATIENCE_S) is not None
    assert not Path(f"/proc/{hanging}").exists()
    gw.end()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_log_that_nobody_reads_holds_no_reload_up(engine: Engines, tmp_path: Path, workers: int) -> None:
    gw = Alone(tmp_path, f"workers = {workers}\n" + model(engine(answering()).url))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with (tmp_path / "gateway.toml").open("a") as file:
        file.write(f"[log]\npath = '{pipe}'\n")
    status, answer = gw.control("POST", "/admin/reload", {})
    told = f"The log {pipe} cannot be written: nobody reads that pipe. Choose another in [log]."
    assert (status, answer["error"]["message"]) == (400, told)
    assert gw.says() == f"withstand: The configuration stays as it was. {told}\n"
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as reader:  # noqa: PTH123
        assert gw.control("POST", "/admin/reload", {})[0] == 200
        assert gw.says() == READ
        os.set_blocking(reader.fileno(), True)
        assert gw.ask(body()).status == 200
        assert '"status":200' in reader.readline()
        assert gw.end() == (0, "")


@pytest.mark.parametrize("workers", [1, 2])
def test_who_is_told_may_be_gone(engine: Engines, tmp_path: Path, workers: int) -> None:
    gw = Alone(tmp_path, f"workers = {workers}\ndrain_s = 60\n" + model(engine(silent).url))
    gw.process.stderr.close()
    for _ in range(2):
        assert gw.control("POST", "/admin/reload", {})[0] == 200
    with contextlib.closing(Client(gw.port)) as client:
        client.send(post(body(stream=True)))
        gw.until("requests_in_flight", 1)
        gw.terminate()
        time.sleep(1.5)  # it tells what it waits for
    assert gw.process.wait(PATIENCE_S) == 0
    gw.process.stdout.close()
