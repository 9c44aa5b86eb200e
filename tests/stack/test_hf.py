"""Laid out anew for Hugging Face: not a bit of a weight changes, and an unknown tokenizer is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from withstand.errors import UsageError
from withstand.stack.hf import named, to_hf

gguf = pytest.importorskip("gguf", reason="the extra `engine` is not installed")
np = pytest.importorskip("numpy", reason="the extra `engine` is not installed")

HEADS, KV_HEADS, WIDTH = 4, 2, 32


def write(path: Path, pre: str) -> dict[str, Any]:
    """A model of one layer; its tensors by their names."""
    rng = np.random.default_rng(1)
    half = WIDTH * KV_HEADS // HEADS
    shapes = {"token_embd": (3, WIDTH), "blk.0.attn_q": (WIDTH, WIDTH), "blk.0.attn_k": (half, WIDTH)}
    shapes |= {"blk.0.attn_v": (half, WIDTH), "blk.0.ffn_up": (64, WIDTH)}
    tensors = {f"{name}.weight": rng.normal(size=shape).astype(np.float16) for name, shape in shapes.items()}
    tensors["output_norm.weight"] = rng.normal(size=WIDTH).astype(np.float32)
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
    for name, array in tensors.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors


def in_hf_order(array: Any, heads: int) -> Any:
    """Row by row: llama.cpp's row 2i + j of a head is Hugging Face's row i + j * half."""
    size = len(array) // heads
    found = np.empty_like(array)
    for row in range(len(array)):
        head, (i, j) = row // size, divmod(row % size, 2)
        found[head * size + i + j * (size // 2)] = array[row]
    return found


def test_every_tensor_keeps_its_bits(tmp_path: Path) -> None:
    tensors = write(tmp_path / "m.gguf", "smollm")
    to_hf(tmp_path / "m.gguf", tmp_path)
    raw = (tmp_path / "model.safetensors").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    assert header.keys() - {"__metadata__"} == {named(name) for name in tensors}
    for name, array in tensors.items():
        told = header[named(name)]
        heads = {"blk.0.attn_q.weight": HEADS, "blk.0.attn_k.weight": KV_HEADS}.get(name)
        expected = in_hf_order(array, heads) if heads else array
        start, end = told["data_offsets"]
        assert told["shape"] == list(array.shape)
        assert data[start:end] == expected.tobytes(), name


def test_an_unknown_pre_tokenizer_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    write(tmp_path / "m.gguf", "llama-bpe")
    with pytest.raises(UsageError, match="pre-tokenizer llama-bpe is not known; take"):
        to_hf(tmp_path / "m.gguf", tmp_path)
    assert not (tmp_path / "model.safetensors").exists()
