"""Files of shared memory that services leave."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from uuid import uuid4

import pytest

from withstand import clock
from withstand.errors import EngineError
from withstand.processes.shared_memory import mapped_by, remove
from withstand.spec.stack import stack_of
from withstand.stack.local import bring_up
from withstand.stack.standing import standing_of
from withstand.stack.state import StackState
from withstand.stack.supervision import Phase
from withstand.stack.taking_down import take_down

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has them as files")

HOLDS = """
import mmap, sys
with open(sys.argv[1], "w+b") as file:
    file.truncate(4096)
    held = mmap.mmap(file.fileno(), 4096)
"""
SERVES = """
import http.server
http.server.test(http.server.SimpleHTTPRequestHandler, port=int(sys.argv[2]), bind="127.0.0.1")
"""


@pytest.mark.parametrize("is_killed", [False, True])
def test_what_a_service_leaves_goes_with_its_stack(
    is_killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path))
    path = Path("/dev/shm") / f"withstand-test-{uuid4().hex}"
    holds_others = HOLDS.replace("sys.argv[1]", "sys.argv[1] + '-others'").replace("held", "held_too")
    args = [sys.executable, "-c", HOLDS + holds_others + SERVES, str(path), "{port}"]
    engine = {"kind": "command", "args": args, "served_as": "m", "health": "/"}
    others = Path(f"{path}-others")
    others.touch()
    standing = bring_up(stack_of({"engines": {"a": engine}}, "s"), lambda *_: None, lambda _: None)
    assert path.exists()
    if is_killed:
        os.kill(standing.state.supervisor.pid, signal.SIGKILL)
    now = standing_of("s")
    assert now
    assert take_down(now) == []
    assert not path.exists()
    others.unlink()


def test_a_users_own_file_that_a_service_only_reads_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path))
    path = Path("/dev/shm") / f"withstand-test-{uuid4().hex}"
    reads = (
        HOLDS.replace("w+b", "rb").replace("file.truncate(4096)", "pass").replace("4096", "4096, prot=mmap.PROT_READ")
    )
    wait = "import pathlib, sys, time\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.02)\n"
    args = [sys.executable, "-c", wait + reads + SERVES, str(path), "{port}"]
    engine = {"kind": "command", "args": args, "served_as": "m", "health": "/"}

    def make_it(state: StackState) -> None:
        if state.units[0].phase is Phase.STARTING and not path.exists():
            whole = path.with_name(f"{path.name}-new")
            whole.write_bytes(bytes(4096))
            whole.rename(path)

    standing = bring_up(stack_of({"engines": {"a": engine}}, "s"), lambda *_: None, make_it)
    leader = standing.state.units[0].leader
    assert leader
    assert str(path) in mapped_by([leader.pid])
    assert take_down(standing) == []
    assert path.exists()
    path.unlink()


def test_what_is_left_by_who_is_killed_before_he_is_ready_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path))
    path = Path("/dev/shm") / f"withstand-test-{uuid4().hex}"
    args = [sys.executable, "-c", f"import time\n{HOLDS}\ntime.sleep(600)", str(path), "{port}"]
    engine = {"kind": "command", "args": args, "served_as": "m", "health": "/"}

    def kill_its_keeper() -> None:
        while not path.exists() or clock.wall_s() - path.stat().st_mtime < 2.5:
            clock.sleep_s(0.05)
        standing = standing_of("s")
        assert standing
        service = standing.state.units[0].leader
        assert service
        os.kill(_parent(service.pid), signal.SIGKILL)

    killing = threading.Thread(target=kill_its_keeper)
    killing.start()
    with pytest.raises(EngineError, match="a ended"):
        bring_up(stack_of({"engines": {"a": engine}}, "s"), lambda *_: None, lambda _: None)
    killing.join()
    assert not path.exists()


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_what_somebody_uses_stays() -> None:
    path = Path("/dev/shm") / f"withstand-test-{uuid4().hex}"
    code = HOLDS + "print('held', flush=True)\nsys.stdin.read()\n"
    argv = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as user:
        assert user.stdout
        user.stdout.readline()
        assert str(path) in mapped_by([user.pid])
        remove([str(path)])
        assert path.exists()
        user.communicate()
    remove([str(path), str(path)])
    assert not path.exists()
    assert mapped_by([user.pid]) == set()


def test_a_semaphore_is_found_though_it_is_mapped_under_another_name() -> None:
    held = "import multiprocessing, sys\nheld = multiprocessing.get_context('spawn').Lock()\n"
    argv = [sys.executable, "-c", held + "print(held._semlock.name, flush=True)\nsys.stdin.read()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout
        name = user.stdout.readline().strip().removeprefix("/")
        assert f"/dev/shm/sem.{name}" in mapped_by([user.pid])
        user.communicate()
