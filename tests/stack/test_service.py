"""A service is healthy inside its block and gone after it, whatever happens to it or to us."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from withstand.errors import EngineError
from withstand.processes.cut import cut
from withstand.processes.words import said_reason, tail
from withstand.stack.edge import REASON
from withstand.stack.service import Service, is_healthy, last_words, running

ANOTHER_PROCESS = """
import sys, time
from pathlib import Path
from withstand.stack.service import Service, running
code, log, port = sys.argv[1:]
argv = (sys.executable, "-c", code, port)
service = Service(name="It", argv=argv, log_file=Path(log), health_url=f"http://127.0.0.1:{port}/health")
with running(service) as up:
    try:
        print(up.pid, flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.stdin.readline()
print("down", flush=True)
"""

WITH_LIFELINE = """
from withstand.stack.lifeline import end_with_parent
end_with_parent()
server.serve_forever()
"""


def start_another(service: Service) -> subprocess.Popen[str]:
    *_, code, port = service.argv
    argv = [sys.executable, "-c", ANOTHER_PROCESS, code, str(service.log_file), port]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)


def test_it_is_healthy_inside_and_gone_after(
    make_service: Callable[..., Service], port: int, gone: Callable[..., bool]
) -> None:
    service = make_service()
    with running(service) as up:
        assert is_healthy(service.health_url)
        assert up.ready_s > 0
    assert gone(up.pid, port, within_s=0.5)


def test_only_200_is_healthy(make_service: Callable[..., Service], port: int) -> None:
    with running(make_service()):
        assert not is_healthy(f"http://127.0.0.1:{port}/elsewhere")
    assert not is_healthy(f"http://127.0.0.1:{port}/health")


def test_an_error_in_the_block_ends_it_and_goes_on(
    make_service: Callable[..., Service], port: int, gone: Callable[..., bool]
) -> None:
    with pytest.raises(ZeroDivisionError), running(make_service()) as up:
        raise ZeroDivisionError
    assert gone(up.pid, port, within_s=0.5)


def test_what_it_inherits_and_what_is_its_own(
    make_service: Callable[..., Service], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "inherited")
    code = "import os; print(os.environ['OURS'], os.environ['ITS'], flush=True); server.serve_forever()"
    with running(make_service(code, env={"ITS": "own"})) as up:
        assert os.getpgid(up.pid) == up.pid != os.getpgid(0)
    assert (tmp_path / "engine.log").read_text() == "inherited own\n"


def test_an_end_at_the_start_is_told_with_the_last_words(make_service: Callable[..., Service], tmp_path: Path) -> None:
    (tmp_path / "engine.log").write_text("words of an earlier run\n")
    dies = make_service("print('loading')\nprint('no such model: x.gguf')\nraise SystemExit(7)", before="")
    with pytest.raises(EngineError) as caught, running(dies):
        pass
    assert str(caught.value) == "The fake engine ended at its start (exit code 7): no such model: x.gguf"


def test_words_of_an_earlier_run_are_not_taken_for_its_own(
    make_service: Callable[..., Service], tmp_path: Path
) -> None:
    (tmp_path / "engine.log").write_text("words of an earlier run\n")
    with pytest.raises(EngineError) as caught, running(make_service("raise SystemExit(7)", before="")):
        pass
    assert str(caught.value) == "The fake engine ended at its start (exit code 7) and said nothing."


def test_never_ready_is_told_and_ended(
    make_service: Callable[..., Service], tmp_path: Path, gone: Callable[..., bool], port: int
) -> None:
    code = f"import os, pathlib, time; pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
    slow = make_service(code + "print('still loading', flush=True); time.sleep(60)", before="", ready_within_s=0.7)
    with pytest.raises(EngineError, match=r"not ready within 0\.7 s: still loading$"), running(slow):
        pass
    assert gone(int((tmp_path / "pid").read_text()), port, within_s=0.5)


def test_an_answer_that_is_not_200_is_told(make_service: Callable[..., Service]) -> None:
    with running(make_service()):
        url = make_service().health_url.replace("health", "elsewhere")
        never = make_service("import time; time.sleep(60)", before="", ready_within_s=0.3, health_url=url)
        with (
            pytest.raises(EngineError, match=r"0\.3 s \(it answers 404 at /elsewhere\) and said nothing"),
            running(never),
        ):
            pass


def test_an_end_in_mid_work_is_an_error(make_service: Callable[..., Service]) -> None:
    def kill_it() -> None:
        with running(make_service()) as up:
            os.kill(up.pid, signal.SIGKILL)
            os.waitid(os.P_PID, up.pid, os.WEXITED | os.WNOWAIT)

    with pytest.raises(EngineError, match=r"in the middle of the work \(killed by SIGKILL"):
        kill_it()


def test_one_that_will_not_end_is_killed(
    make_service: Callable[..., Service], port: int, gone: Callable[..., bool]
) -> None:
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    with running(make_service(stubborn + "server.serve_forever()", stop_s=0.3)) as up:
        pass
    assert gone(up.pid, port, within_s=0.5)


def test_its_own_children_end_with_it(
    make_service: Callable[..., Service], port: int, gone: Callable[..., bool], tmp_path: Path
) -> None:
    child = f"""
import subprocess, pathlib
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path({str(tmp_path / "pid")!r}).write_text(str(child.pid))
server.serve_forever()
"""
    with running(make_service(child)):
        grandchild = int((tmp_path / "pid").read_text())
    assert gone(grandchild, port)


def test_a_program_that_is_not_there(make_service: Callable[..., Service]) -> None:
    with pytest.raises(EngineError, match=r"cannot be started: /no/such/engine: No such file"):
        running(make_service(argv=("/no/such/engine",))).__enter__()


def test_a_log_that_cannot_be_written(make_service: Callable[..., Service], tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"cannot be started: .*nowhere/engine\.log: No such file"):
        running(make_service(log_file=tmp_path / "nowhere" / "engine.log")).__enter__()


def test_a_parent_that_is_killed_takes_it_along(
    make_service: Callable[..., Service], port: int, gone: Callable[..., bool]
) -> None:
    parent = start_another(make_service(WITH_LIFELINE))
    with parent:
        pid = int(parent.stdout.readline())
        parent.kill()
    assert gone(pid, port)


def test_ctrl_c_leaves_it_alive_until_the_block_ends(
    make_service: Callable[..., Service], port: int, gone: Callable[..., bool]
) -> None:
    service = make_service(WITH_LIFELINE)
    with start_another(service) as parent:
        pid = int(parent.stdout.readline())
        os.killpg(parent.pid, signal.SIGINT)
        assert parent.stdout.readline() == "interrupted\n"
        assert is_healthy(service.health_url)
        parent.stdin.write("drained\n")
        parent.stdin.close()
        assert parent.stdout.readline() == "down\n"
    assert gone(pid, port, within_s=0.5)


def test_the_reason_is_quoted_where_its_pattern_is_known(make_service: Callable[..., Service]) -> None:
    says = "print('1 E load: error loading model: it is cut')\nprint('2 E exiting')\nraise SystemExit(1)"
    with (
        pytest.raises(EngineError, match=r"at its start \(exit code 1\): error loading model: it is cut$"),
        running(make_service(says, before="", reason=r" E .*?(error loading model: .+)")),
    ):
        pass


def test_the_last_line_is_the_last_that_says_something(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 100_000 + b"\nthe reason \xff\n\n  \n")
    assert said_reason(tail(log), None) == said_reason(tail(log), "no match") == "the reason \N{REPLACEMENT CHARACTER}"
    log.write_bytes(b"the reason\n-------\n  ____ \n")
    assert said_reason(tail(log), None) == "the reason"
    log.write_bytes(b"")
    assert said_reason(tail(log), None) == ""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (0, " (exit code 0), as one that was told to end, and said nothing."),
        (3, " (exit code 3) and said nothing."),
        (None, " and said nothing."),
    ],
)
def test_one_that_says_nothing_is_told_by_its_end(code: int | None, said: str, tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    assert last_words(tmp_path / "log", 0, code, None) == said


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ('nginx: [emerg] cannot load certificate "nope.pem"\n', 'cannot load certificate "nope.pem"'),
        ("2026/01/01 00:00:00 [emerg] 7#7: *3 bind() failed\nbye\n", "bind() failed"),
        ("nothing of it\n", "nothing of it"),
    ],
)
def test_of_a_pattern_with_several_groups_the_one_that_fits_is_quoted(log: str, said: str) -> None:
    assert said_reason(log, REASON) == said


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (1, " (exit code 1): what it did last"),
        (None, ": what it did last"),
        (-9, " (killed by SIGKILL, perhaps for want of memory). The end of its log: what it did last"),
        (137, " (killed by SIGKILL, perhaps for want of memory). The end of its log: what it did last"),
        (139, " (killed by SIGSEGV). The end of its log: what it did last"),
        (-15, " (killed by SIGTERM). The end of its log: what it did last"),
    ],
)
def test_what_a_killed_one_did_last_is_not_its_reason(code: int | None, said: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("what it did last\n")
    assert last_words(log, 0, code, None) == said


def test_what_a_log_says_does_not_command_the_terminal(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes("\x1b[31mred \x1b]0;TITLE\x07 \u202eturned \0 end\n".encode())
    said = last_words(log, 0, 1, None)
    assert said.isprintable()
    assert said.endswith("turned end")


def test_a_log_has_a_bound_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("ab", buffering=0) as log:
        for number in range(1000):
            log.write(b"line %d\n" % number)
        both = os.open(path, os.O_RDWR | os.O_APPEND)
        cut(both, 10_000, 100)
        assert path.stat().st_size > 8000, "it is not too long"
        cut(both, 5_000, 100)
        os.close(both)
        log.write(b"on\n")
    said, *lines = path.read_text().splitlines()
    assert said.startswith("[withstand has cut 8")
    assert lines[-2:] == ["line 999", "on"]
    assert len(lines) < 20
    assert tail(path, 9000).endswith("on\n")
