import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foreign import VLLM_BLOCK, VLLM_JSON
from ui_server import copied
from withstand.spec import LimitSearch, promise_of
from withstand.ui.entry import Entry, Kind, State
from withstand.ui.library import Library
from withstand.ui.walk import FILE_BYTES_MAX

EVIL = '<script>alert(1)</script>\n\u202egnp.exe\u2066"\x1b[31m'


def listed(folder: Path) -> dict[str, Entry]:
    """By name."""
    return {entry.name: entry for entry in Library(folder).look().entries}


def test_a_run_is_told_from_its_manifest_and_summary(finished: Path, tmp_path: Path) -> None:
    copied(finished, tmp_path / "deep" / "er" / "one")
    (entry,) = Library(tmp_path).look().entries
    stages = json.loads((finished / "summary.json").read_text())["stages"]
    assert (entry.name, entry.kind, entry.state, entry.why) == ("deep/er/one", Kind.RUN, State.DONE, None)
    assert (entry.stages, entry.stages_done, entry.requests, entry.failed) == (2, 2, 24, 0)
    best = max(stages, key=lambda stage: stage["request_throughput"])
    assert entry.request_rate == best["request_throughput"]
    assert entry.ttft_p95_ms == best["p95_ttft_ms"]
    assert entry.token_rate == max(stage["output_throughput"] for stage in stages)
    assert entry.slo_kept is True
    assert entry.page == "report.html"
    assert entry.board is None


def test_what_we_cut_ourselves_has_not_failed(finished: Path, tmp_path: Path) -> None:
    one = copied(finished, tmp_path / "one")
    summary = json.loads((one / "summary.json").read_text())
    summary["stages"][0] |= {"failed": 5, "statuses": {"ok": 7, "cancelled": 3, "timeout": 2}}
    (one / "summary.json").write_text(json.dumps(summary))
    entry = listed(tmp_path)["one"]
    assert (entry.failed, entry.cut) == (2, 3)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("done", "1 stage ended without a good answer."),
        (
            "interrupted",
            "Partial: the run was interrupted; 1 of 2 stages complete, 1 ended without a good answer. ",
        ),
    ],
)
def test_a_stage_without_an_answer_is_not_complete(finished: Path, tmp_path: Path, state: str, told: str) -> None:
    one = copied(finished, tmp_path / "one", state=state)
    summary = json.loads((one / "summary.json").read_text())
    summary["stages"][0] |= {"completed": 0, "failed": 12, "request_throughput": None, "statuses": {"refused": 12}}
    (one / "summary.json").write_text(json.dumps(summary))
    entry = listed(tmp_path)["one"]
    assert (entry.stages, entry.stages_done) == (2, 1)
    assert (entry.why or "").startswith(told)
    assert entry.state is State.PARTIAL


@pytest.mark.parametrize("left_out", ["superseded", "too_long", "too_heavy"])
def test_a_stage_that_the_plan_leaves_out_is_not_missed(finished: Path, tmp_path: Path, left_out: str) -> None:
    one = copied(finished, tmp_path / "one")
    manifest = json.loads((one / "run.json").read_text())
    last = manifest["stages"][-1]
    manifest["stages"].append(last | {"name": "heavier", "place": last.get("place", 0) + 1, "state": left_out})
    (one / "run.json").write_text(json.dumps(manifest))
    entry = listed(tmp_path)["one"]
    assert (entry.stages, entry.stages_done, entry.state, entry.why) == (2, 2, State.DONE, None)


def test_a_further_cycle_that_the_budget_leaves_out_is_not_missed(finished: Path, tmp_path: Path) -> None:
    one = copied(finished, tmp_path / "one")
    manifest = json.loads((one / "run.json").read_text())
    manifest["plan"]["cycles"] = 2
    manifest["stages"].append(manifest["stages"][-1] | {"state": "left_out"})
    (one / "run.json").write_text(json.dumps(manifest))
    entry = listed(tmp_path)["one"]
    assert (entry.stages, entry.stages_done, entry.state, entry.why) == (2, 2, State.DONE, None)


def test_a_run_without_a_good_answer_is_not_done(finished: Path, tmp_path: Path) -> None:
    """20 of 20 had failed, and it was green."""
    one = copied(finished, tmp_path / "one")
    summary = json.loads((one / "summary.json").read_text())
    for stage in summary["stages"]:
        stage |= {"completed": 0, "failed": 12, "request_throughput": None, "statuses": {"refused": 12}}
    (one / "summary.json").write_text(json.dumps(summary))
    library = Library(tmp_path)
    (entry,) = library.look().entries
    assert (entry.state, entry.stages_done) == (State.NOTHING, 0)
    detail = library.detail(entry.id)
    assert [stage.state for stage in detail.stages if stage.requests] == ["no_good_answer"] * 2


def test_a_comparison_is_told_by_its_sides_and_what_it_comes_to(tmp_path: Path) -> None:
    (tmp_path / "comparison.html").write_text("<p>")
    assert listed(tmp_path)[tmp_path.name].headline is None
    told = {"sides": [{"label": "old"}, {"label": EVIL}], "headline": "old is better."}
    (tmp_path / "comparison.json").write_text(json.dumps(told))
    entry = listed(tmp_path)[tmp_path.name]
    assert (entry.kind, entry.headline, entry.page) == (Kind.COMPARISON, "old is better.", "comparison.html")
    assert entry.target is not None
    assert entry.target.startswith("old, <script>")
    assert "\x1b" not in entry.target
    (tmp_path / "comparison.json").write_text('{"sides": 3}')
    assert listed(tmp_path)[tmp_path.name].headline is None


def test_a_comparison_in_turn_that_was_cut_is_partial(tmp_path: Path) -> None:
    (tmp_path / "comparison.html").write_text("<p>")
    (tmp_path / "ab.json").write_text('{"pairs": 8}')
    for whole, state in ((2, State.PARTIAL), (8, State.DONE)):
        sides = [{"label": side, "sources": [f"{side}-{i}" for i in range(whole)]} for side in "ab"]
        (tmp_path / "comparison.json").write_text(json.dumps({"sides": sides, "headline": "a is better."}))
        entry = listed(tmp_path)[tmp_path.name]
        assert entry.state is state
        assert (entry.why or "").startswith("Partial: 2 of 8 pairs are measured.") is (whole == 2)
    (tmp_path / "ab.json").write_text("{")
    assert listed(tmp_path)[tmp_path.name].state is State.DONE


def test_a_comparison_of_very_many_stages_is_no_damaged_one(tmp_path: Path) -> None:
    """Its page is what one opens; only what stands in its line is not known."""
    (tmp_path / "comparison.html").write_text("<p>")
    (tmp_path / "comparison.json").write_text(" " * (16 * 1024 * 1024 + 1))
    entry = listed(tmp_path)[tmp_path.name]
    assert (entry.state, entry.why) == (State.DONE, "comparison.json is larger than 16 MiB.")


def test_the_blocks_of_a_comparison_in_turn_are_told_to_be_its(finished: Path, tmp_path: Path) -> None:
    """Until there is a comparison below which they could stand they are runs like any other."""
    for name in ("ab/01-A", "ab/02-B", "alone"):
        copied(finished, tmp_path / name)
    (tmp_path / "ab" / "ab.json").write_text("{}")
    assert {entry.block_of for entry in listed(tmp_path).values()} == {None}
    (tmp_path / "ab" / "comparison.html").write_text("<p>")
    found = listed(tmp_path)
    assert {name: entry.block_of for name, entry in found.items()} == {
        "ab": None,
        "alone": None,
        "ab/01-A": found["ab"].id,
        "ab/02-B": found["ab"].id,
    }


def test_records_are_never_read(finished: Path, tmp_path: Path) -> None:
    one = copied(finished, tmp_path / "one")
    (one / "records.jsonl.gz").unlink()
    os.mkfifo(one / "records.jsonl.gz")
    assert listed(tmp_path)["one"].state is State.DONE


def test_the_newest_comes_first(finished: Path, tmp_path: Path) -> None:
    for day in (3, 1, 2):
        copied(finished, tmp_path / str(day), created_utc=f"2026-11-0{day}T00:00:00Z")
    assert list(listed(tmp_path)) == ["3", "2", "1"]


def test_what_the_summary_says_against_the_slo_is_told(finished: Path, tmp_path: Path) -> None:
    plan = json.loads((finished / "run.json").read_text())["plan"]
    one = copied(finished, tmp_path / "one", plan=plan | {"goodput": {"ttft": 1.0, "share": 0.99}})
    summary = json.loads((one / "summary.json").read_text())
    summary["stages"][1]["request_goodput"] /= 2
    (one / "summary.json").write_text(json.dumps(summary))
    assert listed(tmp_path)["one"].slo_kept is False


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"state": "running"}, State.RUNNING),
        ({"state": "running", "writer": {"pid": 2**31 - 1, "started": None}}, State.PARTIAL),
        ({"state": "running", "writer": {"pid": 2**70, "started": None}}, State.PARTIAL),
        ({"state": "running", "writer": {"pid": -1, "started": None}}, State.PARTIAL),
        ({"state": "interrupted"}, State.PARTIAL),
        ({"state": "failed", "error": EVIL}, State.FAILED),
        ({"schema": 99}, State.DAMAGED),
        ({"state": 7}, State.DAMAGED),
        ({"created_utc": "+999999999-01-01T00:00:00Z"}, State.DONE),
        ({"created_utc": "0001-01-01T00:00:00+2359"}, State.DONE),
    ],
)
def test_the_state_is_that_of_the_run(finished: Path, tmp_path: Path, changes: dict[str, Any], state: State) -> None:
    alive = {"writer": {"pid": os.getpid(), "started": None}}
    copied(finished, tmp_path / "one", **(alive | changes))
    assert listed(tmp_path)["one"].state is state


def test_a_run_that_dies_is_noticed_though_no_file_has_changed(finished: Path, tmp_path: Path) -> None:
    child = os.posix_spawn("/bin/sleep", ["sleep", "600"], {})
    copied(finished, tmp_path / "one", state="running", writer={"pid": child, "started": None})
    library = Library(tmp_path)
    library._looked_ns = -(10**18)
    assert library.look().entries[0].state is State.RUNNING
    os.kill(child, 9)
    os.waitpid(child, 0)
    library._looked_ns = -(10**18)
    assert library.look().entries[0].state is State.PARTIAL


def test_what_has_changed_is_read_again_and_nothing_else(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (copied(finished, tmp_path / name) for name in ("one", "other"))
    library = Library(tmp_path)
    library.look()
    read: list[Path] = []
    whole = library._read
    monkeypatch.setattr(library, "_read", lambda id_, place: (read.append(place.path), whole(id_, place))[1])
    manifest = json.loads((other / "run.json").read_text())
    (other / "run.json").write_text(json.dumps(manifest | {"model": "another"}))
    library._looked_ns = -(10**18)
    assert {entry.model for entry in library.look().entries} == {"another", manifest["model"]}
    assert read == [other.resolve()]
    shutil.rmtree(one)
    library._looked_ns = -(10**18)
    assert [entry.name for entry in library.look().entries] == ["other"]


def test_imports_and_result_files_of_others_are_listed(tmp_path: Path) -> None:
    (tmp_path / "bench.json").write_text(json.dumps(VLLM_JSON))
    (tmp_path / "printed.txt").write_text(VLLM_BLOCK)
    (tmp_path / "notes.txt").write_text("bread, milk")
    (tmp_path / "tsconfig.json").write_text('{"compilerOptions": {}}')
    found = listed(tmp_path)
    assert {name: entry.kind for name, entry in found.items()} == {"bench.json": Kind.FILE, "printed.txt": Kind.FILE}
    assert found["bench.json"].requests
    assert found["bench.json"].tool == "vLLM"


def test_a_page_that_compares_is_listed(tmp_path: Path) -> None:
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "comparison.html").write_text("<p>one and other</p>")
    assert listed(tmp_path)["both"].kind is Kind.COMPARISON


def test_a_search_tells_its_limit(finished: Path, tmp_path: Path) -> None:
    plan = json.loads((finished / "run.json").read_text())["plan"]
    one = copied(finished, tmp_path / "one")
    search = msgspec.to_builtins(LimitSearch(promises=(promise_of("ttft:p95:500"),)))
    manifest = json.loads((one / "run.json").read_text())
    (one / "run.json").write_text(json.dumps(manifest | {"plan": plan | {"find_limit": search}}))
    entry = listed(tmp_path)["one"]
    assert entry.kind is Kind.SEARCH
    assert entry.limit
    assert entry.limit.startswith("Nothing is known")
    assert entry.state is State.NOTHING


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (("holds", "breaks"), State.DONE),
        (("breaks", "breaks"), State.PARTIAL),
        (("holds", "open"), State.PARTIAL),
        (("open", "open"), State.NOTHING),
    ],
)
def test_a_search_without_both_ends_is_no_answer(
    finished: Path, tmp_path: Path, found: tuple[str, str], state: State
) -> None:
    search = msgspec.to_builtins(LimitSearch(promises=(promise_of("ttft:p95:500"),)))
    manifest = json.loads((finished / "run.json").read_text())
    measured = [entry for entry in manifest["stages"] if not entry["stage"].get("warmup")]
    for entry, standing in zip(measured, found, strict=True):
        shares = [{"broken": {"holds": 0, "breaks": 900, "open": 50}[standing], "of": 1000}]
        entry["look"] = {"standing": standing, "shares": shares, "requests": 1000}
        entry["stage"]["phase"] = "search"
    copied(finished, tmp_path / "one", plan=manifest["plan"] | {"find_limit": search}, stages=manifest["stages"])
    told = listed(tmp_path)["one"]
    assert (told.state, bool(told.why)) == (state, state is State.PARTIAL), told.limit


HOSTILE = {
    "deep": b'{"schema": 1, "plan": ' + b"[" * 100_000,
    "numbers": b'{"schema": 1e999}',
    "types": b'{"schema": 1, "plan": 7, "stages": "x"}',
    "empty": b"",
    "bytes": bytes(range(256)),
    "surrogates": b'{"schema": 1, "version": "\\ud800"}',
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("file", ["run.json", "summary.json", "imported.json"])
def test_a_damaged_folder_does_not_hide_the_others(finished: Path, tmp_path: Path, name: str, file: str) -> None:
    copied(finished, tmp_path / "good")
    bad = copied(finished, tmp_path / EVIL.replace("/", "_"))
    if file == "imported.json":
        (bad / "run.json").unlink()
    (bad / file).write_bytes(HOSTILE[name])
    found = listed(tmp_path)
    assert found["good"].state is State.DONE
    others = [entry for entry in found.values() if entry.name != "good"]
    assert all(entry.why or entry.state is State.DONE for entry in others)
    for entry in others:
        assert all(text.isprintable() for text in (entry.name, entry.why or ""))
    msgspec.json.encode(found)


def test_numbers_that_no_browser_can_hold_are_refused(finished: Path, tmp_path: Path) -> None:
    one = copied(finished, tmp_path / "one")
    summary = json.loads((one / "summary.json").read_text())
    summary["stages"][0]["attempted"] = 10**400
    (one / "summary.json").write_text(json.dumps(summary))
    entry = listed(tmp_path)["one"]
    assert entry.requests is None
    assert "summary.json is damaged" in (entry.why or "")


def test_nothing_outside_is_listed_and_nothing_special_is_opened(finished: Path, tmp_path: Path) -> None:
    outside = copied(finished, tmp_path / "outside")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "folder").symlink_to(outside)
    (inside / "linked").mkdir()
    (inside / "linked" / "run.json").symlink_to(outside / "run.json")
    (inside / "pipe").mkdir()
    os.mkfifo(inside / "pipe" / "run.json")
    os.mkfifo(inside / "result.json")
    (inside / "huge").mkdir()
    with (inside / "huge" / "run.json").open("wb") as file:
        file.truncate(1 << 40)
    with (inside / "large.json").open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)
    copied(finished, inside / "half")
    (inside / "half" / "summary.json").unlink()
    (inside / "half" / "summary.json").symlink_to(outside / "summary.json")
    found = listed(inside)
    assert set(found) == {"huge", "half"}
    assert found["huge"].why == "run.json is larger than 16 MiB."
    assert found["half"].requests is None


def test_a_name_that_is_no_text_can_be_listed(finished: Path, tmp_path: Path) -> None:
    copied(finished, tmp_path / os.fsdecode(b"\xff\xfe"))
    (entry,) = Library(tmp_path).look().entries
    assert msgspec.json.encode(entry)
    assert entry.state is State.DONE


def test_a_loop_of_links_ends_and_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to(tmp_path)
    assert not Library(tmp_path).look().entries
    assert not Library(tmp_path / "runs").look().entries
