"""Where usage outlives a process: every store does the same, on real servers, and failing fails no request."""

import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engines import Behave, Engine
from gateways import PATIENCE_S, Gateway, body
from money import bearer, row_of, spends, toml
from withstand.errors import StorageError, UsageError
from withstand.gateway.money.rows import Slot, Sums
from withstand.gateway.money.stores.opening import open_store
from withstand.gateway.money.stores.store import Batch, Store
from withstand.stack.ports import free_port

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]

DAY, NEXT = "2026-11-29", "2026-12-01"
PERIODS = (DAY, DAY[:7], "total")
ALICE = bearer("sk-alice")


class Server:
    """A database's process; gone when the tests are over."""

    def __init__(self, command: list[str], **more: object) -> None:
        self._command, self._more = command, more
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._more,  # type: ignore[call-overload]
        )

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE_S)


def opened(url: str) -> Store:
    """When the server has come up."""
    end_s = time.monotonic() + 6 * PATIENCE_S
    while True:
        try:
            return open_store(url, None)
        except StorageError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.05)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("redis", reason="the extra gateway-redis is not installed")
    binary = shutil.which("redis-server") or shutil.which("valkey-server")
    if binary is None:
        pytest.skip("neither redis-server nor valkey-server is installed")
    port = free_port()
    folder = tmp_path_factory.mktemp("redis")
    server = Server([binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)])
    url = f"redis://127.0.0.1:{port}/0"
    opened(url).close()
    yield url
    server.stop()


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("psycopg", reason="the extra gateway-postgres is not installed")
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = binaries[-1] / "postgres" if binaries else shutil.which("postgres")
    if found is None:
        pytest.skip("PostgreSQL's server is not installed")
    user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name  # it does not run as root
    folder = Path(tempfile.mkdtemp())
    if os.getuid() == 0:
        shutil.chown(folder, user)
    initdb = [str(Path(found).resolve().parent / "initdb"), "-D", f"{folder}/db", "-U", "postgres", "-A", "trust", "-N"]
    more = {"user": user} if os.getuid() == 0 else {}
    subprocess.run(initdb, check=True, capture_output=True, **more)
    port = free_port()
    settings = ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"]
    server = Server([str(found), "-D", f"{folder}/db", "-p", str(port), *settings], **more)
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    opened(url).close()
    yield url
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "usage.sqlite3")
    url: str = request.getfixturevalue(f"{request.param}_url")
    if request.param == "redis":
        pytest.importorskip("redis").Redis.from_url(url).flushall()
    else:
        with pytest.importorskip("psycopg").connect(url) as db:
            db.execute("TRUNCATE withstand_usage, withstand_spending, withstand_writers")
    return url


def sums(requests: int, cost_nusd: int = 0) -> Sums:
    return Sums(requests=requests, prompt_tokens=2 * requests, cost_nusd=cost_nusd)


def test_sums_add_up_and_a_batch_counts_once(state: str) -> None:
    one, other = open_store(state, None), open_store(state, None)
    odd = Slot('a:"b,\n\\é', "org/m:1", DAY)
    first = Batch(1, {odd: sums(3, 5), Slot("b", "m", NEXT): sums(1, 10**12)})
    one.add(first)
    one.add(first)  # its answer was lost
    other.add(Batch(1, {odd: sums(4, 7)}))
    one.add(Batch(2, {odd: sums(1)}))
    for store in (one, other):
        assert store.usage(DAY, DAY) == {odd: sums(8, 12)}
        assert store.usage(DAY, NEXT)[Slot("b", "m", NEXT)] == sums(1, 10**12)
        spent = store.spent(PERIODS)
        assert [spent[odd.owner, period] for period in PERIODS] == [12, 12, 12]
        assert spent["b", "total"] == 10**12
        assert ("b", DAY) not in spent
    for store in (one, other):
        store.close()
    again = open_store(state, None)
    assert again.usage(DAY, DAY) == {odd: sums(8, 12)}
    again.close()


def test_many_writers_lose_nothing(state: str) -> None:
    def write(store: Store) -> None:
        for number in range(1, 11):
            store.add(Batch(number, {Slot("a", f"m{i}", DAY): sums(1, 3) for i in range(5)}))

    stores = [open_store(state, None) for _ in range(4)]
    threads = [threading.Thread(target=write, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].spent(PERIODS)["a", "total"] == 4 * 10 * 5 * 3
    assert sum(each.requests for each in stores[0].usage(DAY, DAY).values()) == 200
    for store in stores:
        store.close()


def test_a_gateway_keeps_its_usage_there(state: str, engine: Engines, gateway: Gateways) -> None:
    text = toml(engine(spends()).url, f'state = "{state}"\n')
    first = gateway(text)
    for _ in range(3):
        assert first.ask(body(), more=ALICE).status == 200
    assert first.stop() == ""
    assert row_of(gateway(text), "alice", 3)["completion_tokens"] == 15


# What goes wrong.


@pytest.mark.parametrize(
    ("state", "error", "words"),
    [
        ("redis://127.0.0.1:1", StorageError, "redis://127.0.0.1:1 cannot be used: .*; start it"),
        ("postgresql://u:secret@127.0.0.1:1/db", StorageError, "postgresql://127.0.0.1:1/db cannot be used"),
        ("mysql://host/db", UsageError, "mysql:// is not known"),
    ],
)
def test_a_server_that_is_not_there_is_one_sentence(state: str, error: type[Exception], words: str) -> None:
    if "redis" in state:
        pytest.importorskip("redis")
    if "postgres" in state:
        pytest.importorskip("psycopg")
    with pytest.raises(error, match=words) as caught:
        open_store(state, None)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delitem(sys.modules, "withstand.gateway.money.stores.redis", raising=False)
    with pytest.raises(UsageError, match=r"pip install '\.\[gateway-redis\]' in its checkout"):
        open_store("redis://127.0.0.1:1", None)


def test_a_file_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"no database" * 1000)
    locked = tmp_path / "locked"
    holder = sqlite3.connect(locked, isolation_level=None)
    holder.execute("CREATE TABLE a (b)")
    holder.execute("BEGIN EXCLUSIVE")
    newer = tmp_path / "newer"
    sqlite3.connect(newer).execute("PRAGMA user_version = 9")
    for path, words in (
        (broken, "file is not a database"),
        (locked, "database is locked"),
        (tmp_path, "unable to open"),
        (tmp_path / "no" / "folder", "unable to open"),
        (newer, "another version"),
    ):
        with pytest.raises(StorageError, match=words):
            open_store(str(path), None)
    holder.close()


def test_a_read_only_file_is_one_sentence() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are shut to others
        path = Path(folder, "usage")
        open_store(str(path), None).close()
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        user = os.geteuid()
        try:
            if user == 0:
                os.seteuid(pwd.getpwnam("nobody").pw_uid)  # to root no file is read-only
            with pytest.raises(StorageError, match="readonly"):
                open_store(str(path), None)
        finally:
            os.seteuid(user)
            Path(folder).chmod(0o755)


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_taken_away_is_told_and_once_it_is_back_nothing_is_lost(
    engine: Engines, gateway: Gateways, tmp_path: Path, *, replaced: bool
) -> None:
    state, elsewhere = tmp_path / "usage.sqlite3", tmp_path / "elsewhere"
    gw = gateway(toml(engine(spends()).url, f'state = "{state}"\n'))
    assert gw.ask(body(), more=ALICE).status == 200
    row_of(gw, "alice", 1)
    state.rename(elsewhere)
    if replaced:
        state.touch()
    for _ in range(4):
        assert gw.ask(body(), more=ALICE).status == 200
    assert gw.process.stderr.readline() == (
        f"withstand: The state {state} is gone, or is another file now; "
        "put it back, or start the gateway again, which begins with what is there.\n"
    )
    elsewhere.rename(state)
    assert gw.process.stderr.readline() == "withstand: The state can be used again; nothing was lost.\n"
    assert row_of(gw, "alice", 5)["prompt_tokens"] == 50


def test_a_state_that_breaks_meanwhile_fails_no_request_and_loses_nothing(
    engine: Engines, gateway: Gateways, tmp_path: Path
) -> None:
    state = tmp_path / "usage.sqlite3"
    gw = gateway(toml(engine(spends()).url, f'state = "{state}"\n'))
    holder = sqlite3.connect(state, isolation_level=None, timeout=PATIENCE_S)
    holder.execute("BEGIN IMMEDIATE")
    for _ in range(5):
        assert gw.ask(body(), more=ALICE).status == 200
    end_s = time.monotonic() + 3 * PATIENCE_S
    while gw.metrics()["state_failures_total"] == 0:
        assert time.monotonic() < end_s
        assert gw.ask(body(), more=bearer("sk-root")).status == 200
        time.sleep(0.1)
    holder.execute("ROLLBACK")
    assert row_of(gw, "alice", 5)["prompt_tokens"] == 50
    said = gw.stop()
    assert "cannot be used: database is locked" in said
    assert "The state can be used again; nothing was lost." in said
    gw.stop = str  # type: ignore[method-assign]  what it said has been read
