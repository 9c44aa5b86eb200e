"""Texts counted after their stage: beside the records of an open run, in those of a closed one."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand import clock
from withstand.record import Record, Status, TokensFrom, encode_record
from withstand.runs import Manifest, RunFolder, this_process
from withstand.runs.counts import append_counts, read_counts, with_text_tokens
from withstand.spec import Plan

COUNTS = "text-counts.jsonl"


def run_of(path: Path, *records: Record) -> RunFolder:
    manifest = Manifest(version="0", created_utc="now", anchor=clock.anchor(), plan=Plan(), writer=this_process())
    folder = RunFolder.create(path / "run", manifest)
    folder.worker_file(0).write_bytes(b"".join(encode_record(record) + b"\n" for record in records))
    return folder


def streamed(id: int, stage: int = 0, **facts: object) -> Record:  # noqa: A002 - the record's own field
    counted = {"output_tokens": 3, "tokens_from": TokensFrom.CHUNKS}
    return Record(**{"id": id, "stage": stage, "status": Status.OK, "chunk_ns": [1, 2, 3], **counted, **facts})


def told(folder: RunFolder, stage: int | None = None) -> list[tuple[int, int, int | None, int | None]]:
    return [(r.stage, r.id, r.text_tokens, r.output_tokens) for r in folder.records(stage)]


def test_counts_are_read_with_their_records_and_closed_into_them(tmp_path: Path) -> None:
    folder = run_of(tmp_path, streamed(0), streamed(1), streamed(0, stage=1))
    folder.add_text_counts(1, [(0, 7)])
    folder.add_text_counts(0, [(1, 12)])
    wanted = [(0, 0, None, 3), (0, 1, 12, 12), (1, 0, 7, 7)]
    assert told(folder) == wanted
    assert told(folder, 1) == wanted[2:]
    folder.close()
    assert {path.name for path in folder.path.iterdir()} == {"run.json", "records.jsonl.gz"}
    assert told(RunFolder.open(folder.path)) == wanted


def test_a_crash_before_the_counts_were_removed_changes_nothing(tmp_path: Path) -> None:
    folder = run_of(tmp_path, streamed(0))
    folder.add_text_counts(0, [(0, 7)])
    counts = (folder.path / COUNTS).read_bytes()
    folder.close()
    (folder.path / COUNTS).write_bytes(counts)
    assert told(folder) == [(0, 0, 7, 7)]


@given(cut=st.integers(0, 40))
def test_counts_that_a_crash_has_cut_are_left_out(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / COUNTS
    append_counts(path, 0, [(0, 5), (1, 6), (2, 7)])
    path.write_bytes(path.read_bytes()[:-cut] if cut else path.read_bytes())
    whole = {(0, 0): 5, (0, 1): 6, (0, 2): 7}
    found = read_counts(path)
    assert found.items() <= whole.items()
    assert len(found) >= 3 - (cut + 7) // 8


def test_the_servers_count_goes_before_the_texts() -> None:
    record = with_text_tokens(streamed(0, output_tokens=4, tokens_from=TokensFrom.SERVER), 9)
    assert (record.output_tokens, record.tokens_from, record.text_tokens) == (4, TokensFrom.SERVER, 9)


def test_the_texts_count_goes_before_the_events() -> None:
    record = with_text_tokens(streamed(0), 9)
    assert (record.output_tokens, record.tokens_from, record.text_tokens) == (9, TokensFrom.TOKENIZER, 9)


def test_an_answer_without_a_stream_gets_a_count_at_last() -> None:
    record = with_text_tokens(streamed(0, chunk_ns=[], output_tokens=None, tokens_from=None, streamed=False), 9)
    assert (record.output_tokens, record.tokens_from) == (9, TokensFrom.TOKENIZER)


def test_a_text_of_no_tokens_is_no_better_count() -> None:
    record = with_text_tokens(streamed(0), 0)
    assert (record.output_tokens, record.tokens_from, record.text_tokens) == (3, TokensFrom.CHUNKS, 0)
    assert with_text_tokens(streamed(0), None) == streamed(0)
