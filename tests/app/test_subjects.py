"""From paths to sides: own run folders, other tools' files, repeats, engines of one file."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from foreign import DETAILED, VLLM_JSON
from withstand.app.subjects import others_than, sides_of
from withstand.errors import UsageError

SAMPLE = Path(__file__).parents[1] / "runs" / "samples" / "schema-1"


def _file(path: Path, **changes: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**VLLM_JSON, **changes}))
    return path


def _lines(path: Path, *runs: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps({**VLLM_JSON, **run}) + "\n" for run in runs))
    return path


def test_two_files_are_two_sides_named_after_them(tmp_path: Path) -> None:
    one, other = _file(tmp_path / "one.json"), _file(tmp_path / "other.json")
    sides = sides_of([str(one), str(other)], None)
    assert [side.label for side in sides] == ["one.json", "other.json"]
    assert [side.tool for side in sides] == ["vLLM", "vLLM"]


def test_a_side_can_be_given_a_name(tmp_path: Path) -> None:
    one, other = _file(tmp_path / "one.json"), _file(tmp_path / "other.json")
    assert [side.label for side in sides_of([f"before={one}", f"after={other}"], None)] == ["before", "after"]


def test_a_path_with_an_equals_sign_is_a_path(tmp_path: Path) -> None:
    one, other = _file(tmp_path / "rate=5.json"), _file(tmp_path / "other.json")
    assert sides_of([str(one), str(other)], None)[0].label == "rate=5.json"


def test_commas_make_repeats(tmp_path: Path) -> None:
    paths = [str(_file(tmp_path / f"{i}.json", mean_ttft_ms=50.0 + i)) for i in range(3)]
    sides = sides_of([",".join(paths[:2]), paths[2]], None)
    assert [len(side.runs) for side in sides] == [2, 1]
    assert sides[0].sources == tuple(paths[:2])


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    one, other = _file(tmp_path / "old" / "result.json"), _file(tmp_path / "new" / "result.json")
    assert [side.label for side in sides_of([str(one), str(other)], None)] == ["old/result.json", "new/result.json"]


def test_engines_of_one_file_are_sides(tmp_path: Path) -> None:
    path = _lines(tmp_path / "all.jsonl", {"framework": "vllm"}, {"framework": "sgl"})
    assert [side.label for side in sides_of([str(path)], None)] == ["vllm", "sgl"]


def test_a_field_chosen_makes_sides_and_is_no_condition_any_more(tmp_path: Path) -> None:
    runs = [{"gpu": gpu, "framework": "vllm"} for gpu in ("H100", "H200")]
    sides = sides_of([str(_lines(tmp_path / "all.jsonl", *runs))], "gpu")
    assert [side.label for side in sides] == ["H100", "H200"]
    assert "gpu" not in sides[0].runs[0].setting.labels


def test_a_field_that_nothing_tells_is_refused_with_those_there_are(tmp_path: Path) -> None:
    path = _lines(tmp_path / "all.jsonl", {"gpu": "H100"}, {"gpu": "H200"})
    with pytest.raises(UsageError, match="tells no color; its runs tell gpu"):
        sides_of([str(path)], "color")


def test_one_side_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is one side; name another"):
        sides_of([str(_file(tmp_path / "one.json"))], None)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run folder"):
        sides_of([str(tmp_path / "nowhere"), str(tmp_path / "nowhere")], None)


def test_facts_of_a_file_give_their_values_over_time(tmp_path: Path) -> None:
    many = {name: DETAILED[name] * 20 for name in ("input_lens", "output_lens", "ttfts", "itls", "errors")}
    detailed = {**DETAILED, **many, "num_prompts": 60, "completed": 40, "failed": 20,
                "start_times": [1000 + i / 2 for i in range(60)]}  # fmt: skip
    path = tmp_path / "detailed.json"
    path.write_text(json.dumps(detailed))
    run = sides_of([str(path), str(path)], None)[0].runs[0]
    assert run.summary.facts
    assert run.estimates["ttft.mean"].error is not None
    assert run.estimates["success_rate"].value == pytest.approx(2 / 3)


def test_folders_of_one_name_are_told_apart_by_where_they_lie(tmp_path: Path) -> None:
    folders = [tmp_path / where / "nightly" for where in ("old", "new")]
    for folder in folders:
        shutil.copytree(SAMPLE, folder / "one")
    assert [side.label for side in sides_of([*map(str, folders)], None)] == ["old/nightly", "new/nightly"]
    assert [side.label for side in sides_of([str(folders[0])] * 2, None)] == ["nightly #1", "nightly #2"]


def test_one_place_in_a_side_counts_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(SAMPLE, tmp_path / "nightly" / name)
    (tmp_path / "link").symlink_to(tmp_path / "nightly" / "a")
    path, link, folder = (str(tmp_path / name) for name in ("nightly/a", "link", "nightly"))
    one, other = sides_of([f"{path},{link},{path}", f"{path},{folder}"], None)
    assert (one.label, one.sources) == ("a #1", (path,))
    assert len(other.runs) == 2 * len(one.runs)


def test_a_baseline_is_known_under_any_name(tmp_path: Path) -> None:
    old, new = _file(tmp_path / "old.json"), _file(tmp_path / "new.json")
    (tmp_path / "link.json").symlink_to(old)
    arguments = [str(old), f"before={old}", str(tmp_path / "link.json"), str(new), f"{old},{new}"]
    assert others_than(f"main={old}", arguments) == arguments[3:]


def test_what_gave_no_run_is_named_and_a_side_of_nothing_refused(tmp_path: Path) -> None:
    full, hollow = tmp_path / "nightly" / "full", tmp_path / "nightly" / "hollow"
    for folder in (full, hollow):
        shutil.copytree(SAMPLE, folder)
    next(hollow.glob("records*")).unlink()
    side, _ = sides_of([str(tmp_path / "nightly"), str(full)], None)
    assert side.empty == (str(hollow),)
    with pytest.raises(UsageError, match=r"^gone=.*hollow holds nothing that was measured\.$"):
        sides_of([str(full), f"gone={hollow}"], None)


def test_labels_that_are_alike_become_unlike_all_others(tmp_path: Path) -> None:
    paths = [str(_file(tmp_path / f"{i}.json", mean_ttft_ms=50.0 + i)) for i in range(3)]
    sides = sides_of([f"v={paths[0]}", f"v={paths[1]}", f"v #2={paths[2]}"], None)
    assert [side.label for side in sides] == ["v #1", "v #3", "v #2"]


def test_a_position_is_offered_only_where_there_is_one(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "a")
    shutil.copytree(SAMPLE, tmp_path / "b")
    with pytest.raises(UsageError) as told:
        sides_of([str(tmp_path)], None)
    assert "--by position" not in str(told.value)
    with pytest.raises(UsageError, match="--by position"):
        sides_of([str(_lines(tmp_path / "all.jsonl", {}, {}))], None)
