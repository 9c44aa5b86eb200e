"""F16 holds what the quantized file held, to half precision; everything else is copied."""

from pathlib import Path
from typing import Any

import pytest

from withstand.stack.convert import to_f16

gguf = pytest.importorskip("gguf", reason="the extra `engine` is not installed")
np = pytest.importorskip("numpy", reason="the extra `engine` is not installed")

Q = gguf.GGMLQuantizationType


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Tiny")
    writer.add_context_length(8192)
    writer.add_rope_freq_base(10_000.5)
    writer.add_add_bos_token(False)
    writer.add_token_list(["a", "b", "ä"])
    writer.add_token_types([1, 1, 3])
    writer.add_chat_template("{{ messages }}")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_1)
    rng = np.random.default_rng(1)
    writer.add_tensor("norm", rng.normal(size=64).astype(np.float32))
    for name, kind in (("small", Q.Q4_1), ("fine", Q.Q8_0)):
        weights = rng.normal(size=(8, 64)).astype(np.float32)
        writer.add_tensor(name, gguf.quants.quantize(weights, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def values(tensor: Any) -> Any:
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)


def test_weights_are_the_same_to_half_precision_and_norms_are_untouched(source: Path, tmp_path: Path) -> None:
    to_f16(source, tmp_path / "f16.gguf")
    before = {t.name: t for t in gguf.GGUFReader(source).tensors}
    after = {t.name: t for t in gguf.GGUFReader(tmp_path / "f16.gguf").tensors}
    assert list(after) == list(before)
    assert [t.tensor_type for t in after.values()] == [Q.F32, Q.F16, Q.F16]
    for name, tensor in after.items():
        assert list(tensor.shape) == list(before[name].shape)
        exact = values(before[name])
        expected = exact if name == "norm" else exact.astype(np.float16).astype(np.float32)
        assert np.array_equal(values(tensor), expected)


def test_facts_are_copied_and_the_file_type_is_told(source: Path, tmp_path: Path) -> None:
    to_f16(source, tmp_path / "f16.gguf")
    before, after = (
        {k: (f.types, f.contents()) for k, f in gguf.GGUFReader(path).fields.items() if not k.startswith("GGUF.")}
        for path in (source, tmp_path / "f16.gguf")
    )
    assert after.pop("general.file_type")[1] == gguf.LlamaFileType.MOSTLY_F16
    del before["general.file_type"]
    assert after == before


def test_the_same_source_gives_the_same_bytes(source: Path, tmp_path: Path) -> None:
    to_f16(source, tmp_path / "one.gguf")
    to_f16(source, tmp_path / "two.gguf")
    assert (tmp_path / "one.gguf").read_bytes() == (tmp_path / "two.gguf").read_bytes()
