import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from withstand.errors import StorageError
from withstand.runs import lines as module
from withstand.runs.lines import WHOLE, DamagedError, Share, lines_of

FILES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
TEXTS = st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=30)
PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress}


@FILES
@given(texts=TEXTS, cut=st.integers(0, 3), block=st.integers(1, 80), readers=st.integers(1, 5))
@pytest.mark.parametrize("suffix", PACKERS)
def test_readers_share_the_lines_out_among_them(
    tmp_path: Path, suffix: str, texts: list[bytes], cut: int, block: int, readers: int
) -> None:
    data = b"".join(text + b"\n" for text in texts)
    data = data[: len(data) - cut]
    path = tmp_path / f"records.jsonl{suffix}"
    path.write_bytes(PACKERS[suffix](data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK_BYTES", block)
        found = [line for index in range(readers) for line in lines_of(path, Share(index, readers))]
        assert sorted(found) == sorted(io.BytesIO(data))
        assert b"".join(lines_of(path, WHOLE)) == data


def test_what_stands_before_a_damage_is_read(tmp_path: Path) -> None:
    data = b"".join(b"line %d\n" % i for i in range(200_000))
    path = tmp_path / "records.jsonl.gz"
    path.write_bytes(gzip.compress(data)[:-50_000])
    found: list[bytes] = []
    with pytest.raises(DamagedError):
        found.extend(lines_of(path, WHOLE))
    assert len(found) > 100_000
    assert data.startswith(b"".join(found))


def test_packed_with_zstd(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "records.jsonl.zst"
    path.write_bytes(zstandard.compress(b"one\ntw") + zstandard.compress(b"o\n"))
    assert list(lines_of(path, WHOLE)) == [b"one\n", b"two\n"]
    path.write_bytes(zstandard.compress(b"one\ntwo\n" * 1000)[:-5])
    with pytest.raises(DamagedError):
        list(lines_of(path, WHOLE))


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read: Is a directory"):
        list(lines_of(tmp_path, WHOLE))
