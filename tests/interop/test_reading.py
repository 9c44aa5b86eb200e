"""Files, folders and twins: how they are opened, and what is said where nothing can be read."""

import gzip
import json
import os
import sys
from pathlib import Path

import pytest

from foreign import DETAILED, VLLM_BLOCK, VLLM_JSON, several
from withstand.errors import FormatError, StorageError, UsageError
from withstand.interop.read import read_path, read_text
from withstand.runs import is_import, keep_import, open_import


def test_the_same_run_as_text_and_json_in_one_log_counts_once() -> None:
    (run,) = several(f"INFO starting\n{VLLM_BLOCK}\nsaved:\n{json.dumps(VLLM_JSON, indent=2)}\nINFO done\n")
    assert run.source.format == "vLLM JSON"
    assert run.stats["ttft"].mean == 52.501
    assert any("counts once" in remark for remark in run.remarks)


def test_two_runs_that_differ_are_two() -> None:
    other = VLLM_JSON | {"mean_ttft_ms": 60.0}
    assert len(several(f"{VLLM_BLOCK}\n{json.dumps(other)}\n")) == 2
    assert len(several(f"{json.dumps(VLLM_JSON)}\n{json.dumps(VLLM_JSON)}\n")) == 2, "repeats in one file stay"


def test_names_do_not_matter_and_gzip_and_utf16_are_opened(tmp_path: Path) -> None:
    data = json.dumps(VLLM_JSON)
    (tmp_path / "a.weird").write_text(data)
    (tmp_path / "b").write_bytes(gzip.compress(data[:50].encode()) + gzip.compress(data[50:].encode()))
    (tmp_path / "c.txt").write_bytes(data.encode("utf-16"))
    (tmp_path / "d.csv").write_text(f"\ufeff{data}", "utf-8")
    for name in ("a.weird", "b", "c.txt", "d.csv"):
        assert read_path(tmp_path / name).runs[0].numbers["completed"] == 90


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"hello\n", "no result of another tool"),
        (b"{}", "no result of another tool"),
        (b"\x00\xff\xfe\x80", "no text at byte"),
        (gzip.compress(b"x" * 100, mtime=0)[:-9], "compressed, and cut off"),
        (gzip.compress(b"x" * 100, mtime=0)[:10] + b"nonsense", "compressed, and (damaged|cut off)"),
        (b"[" * 100_000, "damaged, or cut off"),
        (b'{"completed": 3, "duration": 1.0, "outp', "line 1.*damaged, or cut off"),
    ],
)
def test_what_is_no_result_is_refused_in_a_sentence(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=reason):
        read_path(path)


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be read: No such file"):
        read_path(tmp_path / "nowhere.json")


def test_a_sweep_s_folder_has_each_run_once(tmp_path: Path) -> None:
    folder = tmp_path / "SERVE--BENCH"
    folder.mkdir()
    runs = [VLLM_JSON | {"run_number": i, "duration": 30.0 + i, "mean_ttft_ms": 50.0 + i} for i in range(3)]
    for i, run in enumerate(runs):
        (folder / f"run={i}.json").write_text(json.dumps(run))
    (folder / "summary.json").write_text(json.dumps(runs))
    (folder / "notes.txt").write_text("nothing here")
    imported = read_path(tmp_path)
    assert sorted(run.stats["ttft"].mean or 0 for run in imported.runs) == [50.0, 51.0, 52.0]


def test_a_folder_of_genai_bench_has_its_description_s_conditions(tmp_path: Path) -> None:
    point = {"aggregated_metrics": {"stats": {"ttft": {"mean": 0.05}}, "num_completed_requests": 1}}
    about = {
        "benchmark_version": "0.0.5",
        "traffic_scenario": [],
        "iteration_type": "x",
        "model": "m",
        "cmd": "--key s",
    }
    (tmp_path / "D10.json").write_text(json.dumps(point))
    (tmp_path / "experiment_metadata.json").write_text(json.dumps(about))
    (run,) = read_path(tmp_path).runs
    assert run.conditions.model == "m"
    assert "--key s" not in repr(run)


def test_an_import_is_kept_whole_and_opened_again(tmp_path: Path) -> None:
    imported = read_text(json.dumps([VLLM_JSON, DETAILED]), "both.json")
    folder = keep_import(imported, tmp_path / "kept")
    assert is_import(folder)
    assert open_import(folder) == imported


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """All of it would be read for ever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(FormatError, match=f"{path} is a device, pipe or socket; save what it gives"):
            read_path(path)


def test_an_import_goes_into_a_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UsageError, match="is a file, where a folder is to be"):
        keep_import(read_text(json.dumps(VLLM_JSON), "a"), tmp_path / "mine.txt")


def test_an_import_does_not_write_over_anything(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UsageError, match="is not empty"):
        keep_import(read_text(json.dumps(VLLM_JSON), "a"), tmp_path)


def test_a_damaged_import_is_told(tmp_path: Path) -> None:
    folder = keep_import(read_text(json.dumps(DETAILED), "a"), tmp_path / "kept")
    (folder / "records-1.jsonl.gz").write_bytes(b"broken")
    with pytest.raises(StorageError, match="is damaged"):
        open_import(folder)
    (folder / "imported.json").write_text((folder / "imported.json").read_text().replace("records-1", "../records-1"))
    with pytest.raises(StorageError, match="no name of a record file"):
        open_import(folder)


def test_a_damaged_line_among_good_ones_is_told() -> None:
    line = json.dumps(VLLM_JSON)
    imported = read_text(f"{line}\n{line[:200]}\n{line}\n", "runs.jsonl")
    assert len(imported.runs) == 2
    assert [refused.position for refused in imported.refused] == ["line 2"]
    assert "damaged" in imported.refused[0].reason


def test_evalscope_s_two_files_of_one_folder_are_one_run(tmp_path: Path) -> None:
    for name, mean in (("parallel_1", 0.1), ("parallel_2", 0.2)):
        (tmp_path / name).mkdir()
        summary = {"Time taken for tests (s)": 1.0, "Succeed requests": 5, "Average time to first token (s)": mean}
        (tmp_path / name / "benchmark_summary.json").write_text(json.dumps(summary))
        (tmp_path / name / "benchmark_percentile.json").write_text(
            json.dumps([{"Percentiles": "99%", "TTFT (s)": mean}])
        )
    runs = read_path(tmp_path).runs
    assert [(run.stats["ttft"].mean, run.stats["ttft"].percentiles) for run in runs] == [
        (100.0, {"p99": 100.0}),
        (200.0, {"p99": 200.0}),
    ]


def test_half_a_character_is_shown_as_unreadable_and_a_whole_one_as_it_is() -> None:
    text = json.dumps(VLLM_JSON | {"framework": "a\ud800b", "\udfffkey": "\U0001f600 \\ud800"})
    (run,) = several(text)
    assert run.conditions.engine == "a\ufffdb"
    assert run.conditions.labels["\ufffdkey"] == "\U0001f600 \\ud800"


def test_a_name_that_is_no_text_is_written_as_far_as_it_can_be(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.json")).write_text(json.dumps(VLLM_JSON))
    (tmp_path / os.fsdecode(b"\xfe.json")).write_text("{")
    imported = read_path(tmp_path)
    assert [run.source.file for run in imported.runs] == ["\ufffd.json"]
    assert open_import(keep_import(imported, tmp_path / "kept")) == imported


def test_a_link_to_itself_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "again").symlink_to(tmp_path)
    with pytest.raises(FormatError, match="cannot be read: Too many levels"):
        read_path(tmp_path / "a")
    (tmp_path / "good.json").write_text(json.dumps(VLLM_JSON))
    assert len(read_path(tmp_path).runs) == 1


@pytest.mark.skipif(sys.platform == "darwin" or os.geteuid() != 0, reason="only root can become nobody")
def test_what_may_not_be_looked_at_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(json.dumps(VLLM_JSON))
    tmp_path.chmod(0o700)
    os.seteuid(65534)
    try:
        for path in (tmp_path, tmp_path / "f.json"):
            with pytest.raises((FormatError, UsageError), match="cannot be read: Permission denied"):
                read_path(path)
    finally:
        os.seteuid(0)


def test_a_file_that_is_still_being_written_has_its_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    line = json.dumps(VLLM_JSON)
    for end in (0, 1, len(line) // 2, len(line) - 1):
        path.write_text(f"{line}\n{line[:end]}")
        assert len(read_path(path).runs) == 1
