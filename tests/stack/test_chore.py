"""A chore is watched by what it writes, and killed when we are interrupted."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from withstand.stack.chore import Chore, carry_out


def chore(folder: Path, code: str) -> Chore:
    return Chore(step="Filling", argv=[sys.executable, "-c", code], folder=folder, size=1000)


def test_progress_follows_the_folder(tmp_path: Path, progress: Any) -> None:
    code = f"""
import time
for name in "abcd":
    open(f"{tmp_path}/{{name}}", "wb").write(bytes(250))
    time.sleep(0.25)
"""
    assert carry_out(chore(tmp_path, code), progress).exit_code == 0
    dones = [done for _, done, _ in progress]
    assert dones == sorted(dones)
    assert set(dones) & {250, 500, 750}
    assert progress[-1] == ("Filling", 1000, 1000)


def test_a_failed_one_never_looks_finished(tmp_path: Path, progress: Any) -> None:
    code = f"open('{tmp_path}/a', 'wb').write(bytes(5000)); raise SystemExit('it went wrong')"
    done = carry_out(chore(tmp_path, code), progress)
    assert (done.exit_code, done.said.strip()) == (1, "it went wrong")
    assert max(done for _, done, _ in progress) < 1000


def test_an_interrupt_kills_it(tmp_path: Path, gone: Callable[..., bool], port: int) -> None:
    def interrupt(step: str, done: int, total: int | None, /) -> None:
        if done:
            raise KeyboardInterrupt

    code = f"import os, time; print(os.getpid(), file=open('{tmp_path}/pid', 'w'), flush=True); time.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        carry_out(chore(tmp_path, code), interrupt)
    assert gone(int((tmp_path / "pid").read_text()), port, within_s=0.5)
