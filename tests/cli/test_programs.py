"""Verbs that are programs of their own, as the command line hands over to them."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cutting import wait_until
from withstand.cli.verbs import VERBS
from withstand.programs import PROGRAMS

WITHSTAND = (sys.executable, "-m", "withstand")


def test_each_is_a_verb_without_a_module() -> None:
    assert set(PROGRAMS) == {name for name, (module, _) in VERBS.items() if module is None}


@pytest.mark.parametrize("before", [(), ("--",)])
@pytest.mark.parametrize("name", ["gateway", "truth-server", "selftest"])
def test_its_options_are_its_own(name: str, before: tuple[str, ...]) -> None:
    shown = subprocess.run([*WITHSTAND, *before, name, "--help"], capture_output=True, text=True, check=True).stdout
    assert shown.startswith(f"Usage: withstand {name} [OPTIONS]")
    assert len(shown.splitlines()) > 10
    odd = [*WITHSTAND, *before, name, b"--\xff"]
    done = subprocess.run(odd, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "withstand: '--\\udcff' on the command line is not UTF-8.\n")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process is")
@pytest.mark.parametrize("name", ["gateway", "truth-server", "selftest"])
@pytest.mark.parametrize("later_s", [0.0, 0.03, 0.1])
def test_a_ctrl_c_while_it_is_loaded_shows_no_traceback(name: str, later_s: float) -> None:
    options = ("--model", "m", "--engine", "http://127.0.0.1:9", "--listen", "127.0.0.1:0") if name == "gateway" else ()
    with subprocess.Popen([*WITHSTAND, name, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        told = Path(f"/proc/{process.pid}/cmdline")
        wait_until(lambda: PROGRAMS[name][-1].encode() in told.read_bytes())
        time.sleep(later_s)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert b"Traceback" not in err
    assert process.returncode in {0, 3, 130, -signal.SIGINT}  # 3: a self-test had begun; a shell says 130 of both
