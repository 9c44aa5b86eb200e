"""One stack at a time is brought up, also where the folder of all stacks goes and comes meanwhile."""

import fcntl
import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from stacks import command, stack, until, up
from withstand.errors import StorageError, UsageError
from withstand.stack.local import bring_up
from withstand.stack.standing import Standing, standing_of
from withstand.stack.taking_down import take_down

pytestmark = pytest.mark.usefixtures("state")


def _locked(folder: Path) -> int:
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def test_the_end_of_the_last_other_stack_lets_nobody_in() -> None:
    other, told = up(stack("other", a=command())), stack(a=command())
    said, second = list[str](), list[Future[Standing]]()
    with ThreadPoolExecutor(1) as pool:

        def look(_: object) -> None:
            assert take_down(other) == []
            second.append(pool.submit(bring_up, told, lambda step, *_: said.append(step), lambda _: None))
            until(lambda: said or second[0].done())

        first = bring_up(told, lambda *_: None, lambda _: None, look)
        with pytest.raises(UsageError, match="is up"):
            second[0].result()
    assert set(said) == {"Waiting for another stack that is being prepared"}
    assert standing_of("s") == first


def test_who_has_waited_for_a_folder_that_was_made_anew_waits_for_that_too(state: Path) -> None:
    folder, said = state / "stacks", list[str]()
    folder.mkdir(parents=True)
    first = _locked(folder)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(bring_up, stack(a=command()), lambda step, *_: said.append(step), lambda _: None)
        until(lambda: said)
        folder.rmdir()
        folder.mkdir()
        second = _locked(folder)
        os.close(first)
        time.sleep(0.5)
        assert not any(folder.iterdir())
        os.close(second)
        assert coming.result().is_up


def test_a_folder_that_another_one_has_made_meanwhile_stays(state: Path) -> None:
    logs = state / "stacks" / "s" / "logs"
    with pytest.raises(StorageError, match="cannot be written: File exists"):
        bring_up(stack(a=command()), lambda *_: None, lambda _: None, lambda _: logs.mkdir(parents=True))
    assert logs.is_dir()


def test_a_state_folder_that_cannot_be_made_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path / "file"))
    with pytest.raises(StorageError, match="cannot be written: Not a directory"):
        up(stack(a=command()))
