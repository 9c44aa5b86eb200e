"""The cache folder: where it is, and that one process at a time works in it."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from withstand.errors import EngineError
from withstand.stack.cache import cache_folder, workplace


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    for name in ("WITHSTAND_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    return monkeypatch


def test_where_it_is(bare_environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == tmp_path / ".cache" / "withstand"
    bare_environment.setattr("sys.platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "withstand"
    bare_environment.setenv("XDG_CACHE_HOME", "relative/paths/are/ignored")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "withstand"
    bare_environment.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/xdg/withstand")
    bare_environment.setenv("WITHSTAND_CACHE", "/own")
    assert cache_folder() == Path("/own")


def test_a_workplace_is_empty_and_vanishes(tmp_path: Path, progress: Any) -> None:
    with workplace(tmp_path / "cache", progress) as work:
        assert list(work.iterdir()) == []
        (work / "half").write_text("a file")
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [".lock"]
    assert progress == []


def test_what_a_killed_process_left_is_swept(tmp_path: Path, progress: Any) -> None:
    (tmp_path / ".work-dead").mkdir()
    (tmp_path / ".work-dead" / "half").write_text("a file")
    with workplace(tmp_path, progress) as work:
        assert [p.name for p in tmp_path.iterdir() if p.is_dir()] == [work.name]


def test_the_second_waits_for_the_first_and_says_so(tmp_path: Path, progress: Any) -> None:
    order = []

    def second() -> None:
        with workplace(tmp_path, progress):
            order.append("second in")

    waiter = threading.Thread(target=second)
    with workplace(tmp_path, progress):
        waiter.start()
        while not progress:
            time.sleep(0.01)
        order.append("first out")
    waiter.join()
    assert order == ["first out", "second in"]
    assert progress.steps == ["Waiting for another withstand that prepares the model"]
    assert progress[-1][1:] == (1, 1)


def test_a_folder_that_cannot_be_written(tmp_path: Path, progress: Any) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match=r"file/models cannot be written: Not a directory; .* WITHSTAND_CACHE"):
        workplace(tmp_path / "file" / "models", progress).__enter__()
