"""Another configuration while requests are under way: nothing of theirs is lost, and a wrong file changes nothing."""

import hashlib
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from engines import DONE, END, EVENT, STREAM_HEAD, Behave, Engine, Seen, Talk, answering, chunk
from gateways import Client, Gateway, body, model, post
from hosted import Hosted, until
from money import bearer, row_of, spends, toml, usage
from withstand.gateway.__main__ import run

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]

RELOADS = 200
TWO_COMMANDS = "[[models.{}.engines]]\nurl = 'http://h:1'\ncommand = ['{}']\n"
TWO_COMMANDS = TWO_COMMANDS.format("a", "x") + TWO_COMMANDS.format("b", "y")

PAIR = "[host]\nmemory_gb = 10\n[models.m]\ndisaggregation = {style = 'sglang'}\n" + "".join(
    f"[[models.m.engines]]\nurl = 'http://h:{i}'\nrole = '{role}'\ncommand = ['x']\nmemory_gb = 6\n"
    for i, role in enumerate(("prefill", "decode"), 1)
)


@pytest.fixture
def rewrite(tmp_path: Path) -> Callable[[str], None]:
    def write(toml: str) -> None:
        (tmp_path / "gateway.toml").write_text('listen = "127.0.0.1:0"\n' + toml)

    return write


def reloaded(gw: Gateway, **headers: str) -> int:
    return gw.control("POST", "/admin/reload", {}, **headers)[0]


def runs_to(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        run(list(words))
    return int(end.value.code or 0)


def key(secret: str, more: str = "") -> str:
    return f'[keys.alice]\nsha256 = "{hashlib.sha256(secret.encode()).hexdigest()}"\nadmin = true\n{more}\n'


def test_streams_outlive_any_number_of_reloads(
    engine: Engines, gateway: Gateways, rewrite: Callable[[str], None]
) -> None:
    """Each stream has one more event per reload, from whichever engine, and none is lost."""
    dice = Random(7)
    talks: list[Talk] = []

    def wait(talk: Talk, seen: Seen) -> None:
        if not seen.json.get("stream"):
            talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
            return
        talk.say(STREAM_HEAD, chunk(EVENT))
        talks.append(talk)
        talk.wait_for_leave(seen)

    some = [engine(wait) for _ in range(3)]
    gw = gateway(model(*(each.url for each in some)))
    streams = [gw.client().send(post(body(stream=True))) for _ in range(12)]
    for stream in streams:
        stream.read_until(EVENT)
    more = gw.client()
    for _ in range(RELOADS):
        urls = dice.sample([each.url for each in some], dice.randint(1, 3))
        policy = dice.choice(["round_robin", "least_inflight"])
        rewrite(model(*urls, more=f'policy = "{policy}"\naliases = ["x{dice.randint(0, 9)}"]'))
        assert reloaded(gw) == 200
        assert more.send(post(body())).answer().status == 200
        for talk in talks:
            talk.say(chunk(EVENT))
    for talk in talks:
        talk.say(chunk(DONE), END)
    for stream in streams:
        answer = stream.answer()
        assert answer.complete
        assert answer.raw.count(EVENT) == RELOADS + 1
    gw.until("requests_in_flight", 0)
    left = {f'engine_in_flight{{engine="{each.name}"}}': 0 for each in some if each.url in urls}
    until(lambda: left == {k: v for k, v in gw.metrics().items() if k.startswith("engine_in_flight")}, "all are known")


def test_a_removed_engine_ends_what_it_has_begun_and_may_come_back(
    engine: Engines, gateway: Gateways, rewrite: Callable[[str], None]
) -> None:
    talks: list[Talk] = []

    def begin(talk: Talk, seen: Seen) -> None:
        talk.say(STREAM_HEAD, chunk(EVENT))
        talks.append(talk)
        talk.wait_for_leave(seen)

    old, new = engine(begin), engine(answering())
    gw = gateway(model(old.url))
    client = gw.client().send(post(body()))
    client.read_until(EVENT)
    rewrite(model(new.url))
    assert reloaded(gw) == 200
    count = f'engine_in_flight{{engine="{old.name}"}}'
    assert gw.metrics()[count] == 1
    assert [gw.ask(body()).header("x-withstand-engine") for _ in range(4)] == [new.name] * 4
    rewrite(model(new.url, old.url))
    assert reloaded(gw) == 200
    assert gw.metrics()[count] == 1, "it is the same engine, with what it has under way"
    talks[0].say(chunk(DONE), END)
    assert client.answer().complete


def test_keys_limits_and_log_hold_from_the_next_request_on(
    engine: Engines, gateway: Gateways, rewrite: Callable[[str], None], tmp_path: Path
) -> None:
    one = engine(answering())
    log = tmp_path / "log"
    gw = gateway(key("old") + model(one.url) + f'[log]\npath = "{log}"\n')
    client = gw.client()
    bearer = "Authorization: Bearer {}\r\n".format
    assert client.send(post(body(), more=bearer("old"))).answer().status == 200
    log.rename(tmp_path / "log.1")
    rewrite(key("new") + model(one.url) + f'[limits]\nbody_bytes = 1024\n[log]\npath = "{log}"\n')
    assert reloaded(gw, Authorization="Bearer new") == 401
    assert reloaded(gw, Authorization="Bearer old") == 200
    assert client.send(post(body(), more=bearer("old"))).answer().status == 401
    assert client.send(post(body(), more=bearer("new"))).answer().status == 200
    assert client.send(post(body(pad="x" * 2000), more=bearer("new"))).answer().status == 413
    gw.stop()
    assert (tmp_path / "log.1").read_bytes().count(b"\n") == 1
    assert log.read_bytes().count(b"\n") == 2


def test_what_a_key_has_used_stays_counted(
    engine: Engines, gateway: Gateways, rewrite: Callable[[str], None], tmp_path: Path
) -> None:
    talks: list[Talk] = []

    def hold(talk: Talk, seen: Seen) -> None:
        talk.say(STREAM_HEAD, chunk(EVENT))
        talks.append(talk)
        talk.wait_for_leave(seen)

    one, state = engine(spends(10, 5)), f"state = '{tmp_path / 'usage'}'\n"
    alice, root = bearer("sk-alice"), {"Authorization": "Bearer sk-root"}
    gw = gateway(state + toml(one.url, alice="limits.rpm = 9"))
    assert [gw.ask(body(), more=alice).status for _ in range(2)] == [200] * 2
    rewrite(state + toml(one.url, alice="limits.rpm = 2"))
    assert reloaded(gw, **root) == 200
    assert gw.ask(body(), more=alice).error["code"] == "rate_limit_exceeded"
    rewrite(state + toml(one.url, alice="limits.rpm = 4\nlimits.concurrency = 1"))
    assert reloaded(gw, **root) == 200
    one.behave = hold
    stream = gw.client().send(post(body(stream=True), more=alice))
    assert b"x-ratelimit-remaining-requests: 1" in stream.read_until(EVENT)
    rewrite(state + toml(one.url, alice="limits.rpm = 100\nlimits.concurrency = 1"))
    assert reloaded(gw, **root) == 200
    assert gw.ask(body(), more=alice).error["type"] == "concurrency", "the stream is under way still"
    talks[0].say(chunk(b"data: " + usage(10, 5) + b"\n\n"), chunk(DONE), END)
    assert stream.answer().complete
    assert row_of(gw, "alice", 3)["cost_usd"] == pytest.approx(0.06)
    one.behave = spends(10, 5)
    rewrite(state + toml(one.url, alice="budget.usd = 0.05"))
    assert reloaded(gw, **root) == 200
    assert gw.ask(body(), more=alice).error["code"] == "insufficient_quota"
    rewrite(toml(one.url))
    status, answer = gw.control("POST", "/admin/reload", {}, **root)
    assert status == 400
    assert re.search(r"`\$\.state` is nothing now and was .*; that takes a restart", answer["error"]["message"])


WRONG = {
    "[models.m": "is no TOML",
    "[models.m]\npolicy = 'best'\n": "policy",
    "[models.m]\n[[models.m.engines]]\nurl = 'ftp://x'\n": r"\$\.models\.m\.engines\[0\]\.url",
    "[[models.m.engines]]\nurl = 'http://127.0.0.1:1'\napi_key_env = 'WITHSTAND_NONE'\n": r"engines\[0\]\.api_key_env",
    "[models.m]\n[keys.a]\nsha256_env = 'WITHSTAND_NONE'\n": "holds no SHA-256",
    "[models.m]\n[log]\npath = '/no/such/folder/log'\n": "there is no folder /no/such/folder",
}


def test_a_wrong_file_changes_nothing_and_is_said(
    engine: Engines, tmp_path: Path, rewrite: Callable[[str], None]
) -> None:
    gw = Gateway(tmp_path, model(engine(answering()).url))
    assert gw.process.stderr is not None
    for wrong, said in WRONG.items():
        rewrite(wrong)
        status, answer = gw.control("POST", "/admin/reload", {})
        assert status == 400
        assert re.search(said, answer["error"]["message"])
        gw.process.send_signal(signal.SIGHUP)
        for _ in ("asked by a request", "asked by a signal"):
            line = gw.process.stderr.readline()
            assert line.startswith("withstand: The configuration stays as it was. ")
            assert re.search(said, line)
        assert gw.ask(body()).status == 200
    gw.stop()


def test_to_listen_elsewhere_takes_a_restart(engine: Engines, gateway: Gateways, tmp_path: Path) -> None:
    gw = gateway(model(engine(answering()).url))
    (tmp_path / "gateway.toml").write_text('listen = "127.0.0.1:1"\n[models.m]\n')
    status, answer = gw.control("POST", "/admin/reload", {})
    assert status == 400
    assert "that takes a restart" in answer["error"]["message"]
    assert gw.ask(body()).status == 200


def test_sighup_has_the_file_read_again(engine: Engines, gateway: Gateways, rewrite: Callable[[str], None]) -> None:
    gw = gateway("[models.other]\n")
    rewrite(model(engine(answering()).url))
    gw.process.send_signal(signal.SIGHUP)
    until(lambda: gw.ask(body()).status == 200, "the file was not read")


def test_a_gateway_without_a_file_has_none_to_read(engine: Engines) -> None:
    command = [sys.executable, "-m", "withstand.gateway", "--listen", "127.0.0.1:0", "--model", "m"]
    command += ["--engine", engine(answering()).url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        gw = Gateway.__new__(Gateway)
        gw.port = int(process.stdout.readline().rsplit(":", 1)[1].split()[0])
        status, answer = gw.control("POST", "/admin/reload", {})
        process.terminate()
    assert status == 400
    assert "started without a file" in answer["error"]["message"]


def test_a_hosted_engine_keeps_its_process_unless_its_command_is_another(
    gateway: Gateways, rewrite: Callable[[str], None], tmp_path: Path
) -> None:
    if sys.platform != "linux":
        pytest.skip("looks at processes by /proc")
    host = f"[host]\nstate = '{tmp_path / 'state'}'\n"
    hosted = Hosted(tmp_path / "e")
    hosted.tell("hold")
    gw = gateway(host + hosted.toml())

    def ask() -> Client:
        return gw.client().send(post(body(stream=True)))

    client = ask()
    client.read_until(EVENT)
    rewrite(host + hosted.toml(more="idle_s = 77\nweight = 2"))
    assert reloaded(gw) == 200
    again = ask()
    again.read_until(EVENT)
    assert len(hosted.pids) == 1
    rewrite(host + hosted.toml(more='env = { ANOTHER = "1" }'))
    assert reloaded(gw) == 200
    waits = ask()
    gw.until('queued{model="m"}', 1)
    assert len(hosted.pids) == 1, "streams end first"
    hosted.untell("hold")
    assert [each.answer().complete for each in (client, again, waits)] == [True] * 3
    assert len(hosted.pids) == 2
    rewrite("[models.m]\n")
    assert reloaded(gw) == 200
    hosted.until_gone()


@pytest.mark.parametrize(
    ("toml", "code", "said"),
    [
        ("[models.m]\n[[models.m.engines]]\nurl = 'http://127.0.0.1:1'\n", 0, r"gateway\.toml is good\."),
        ("[models.m]\npolicy = 'best'\n", 2, r"policy"),
        ("[models.m]\n[[models.m.engines]]\nurl = 'http://h:1'\ncommand = []\n", 2, r"engines\[0\]\.command"),
        ("[host]\nmemory_gb = 8\n[[models.m.engines]]\nurl = 'http://h:1'\ncommand = ['x']\n", 2, "memory_gb"),
        ("[host]\nmemory_gb = 8\n[[models.m.engines]]\nurl = 'http://h:1'\ncommand = ['x']\nmemory_gb = 9\n", 2, "fit"),
        ("[[models.m.engines]]\nurl = 'https://h:1'\ncommand = ['x']\n", 2, r"engines\[0\]\.url"),
        ("[models.m]\nqueue = {requests = 0}\n[[models.m.engines]]\nurl = 'http://h:1'\ncommand = ['x']\n", 2, "queue"),
        (TWO_COMMANDS, 2, "another one"),
        (PAIR, 2, r"together and take 12 GB, of which \[host\] has 10.*`\$\.models\.m\.engines`"),
        ("[models.m]\n[keys.a]\nsha256_env = 'WITHSTAND_NONE'\n", 2, "holds no SHA-256"),
    ],
)
def test_check_only_looks(tmp_path: Path, capsys: pytest.CaptureFixture[str], toml: str, code: int, said: str) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(toml)
    assert runs_to("check", str(path)) == code
    assert re.search(said, "".join(capsys.readouterr()))
