"""Text from files that would like to be a program: in every string of run folders and of foreign files, and in names.

A real parser finds no more markup in the pages than without it, and a real browser, its policy taken away, runs none.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from foreign import DETAILED, SGLANG_LINE, VLLM_BLOCK, VLLM_JSON
from mutations import leaves
from pages import CHROMIUM, browse, measured, parsed
from withstand.app.report import load_run
from withstand.cli.entry import exit_code_of
from withstand.errors import WithstandError
from withstand.record import decode_record, encode_record
from withstand.runs import RunFolder

SAMPLE = Path(__file__).parents[1] / "runs" / "samples" / "schema-1"
DEED = "document.documentElement.dataset.done=1"
WORDS = (
    f"<script>{DEED}</script>",
    f"</script><script>{DEED}</script>",
    f'"><img src=x onerror={DEED}>',
    f"'><svg onload={DEED}>",
    f"]]><img src=x onerror={DEED}>",
    f"--><img src=x onerror={DEED}>",
    f"</title></style></textarea><img src=x onerror={DEED}>",
    f"\u2028{DEED}\u2029//",
    f"javascript:{DEED}",
    f"<a href=javascript:{DEED}>x</a>",
    f"${{{DEED}}} {{{{{DEED}}}}}",
    f"&lt;img src=x onerror={DEED}&gt;",
    f"\\u003cimg src=x onerror={DEED}\\u003e",
    "<!--<script>",
    "<base href=//x.invalid/><meta http-equiv=refresh content=0>",
    f"\x00<\x00img src=x onerror={DEED}>\x1b]0;x\x07",
)
_MARKDOWN_TAG = re.compile(r"(?<!\\)<([^\s<>]*)")
URLS = frozenset({"src", "href", "xlink:href", "action", "formaction", "srcset", "poster", "data", "background"})


def poisoned(value: Any, accepts: Callable[[Any], bool]) -> Any:
    """With hostile words as every string, and as an added key, wherever the owner of the format takes them."""
    words = cycle(WORDS)
    for path in list(leaves(value)):
        place = _at(value, path)
        for change in _changes(value, path, place, next(words)):
            value = change if accepts(change) else value
    return value


def _at(value: Any, path: Sequence[Any]) -> Any:
    for key in path:
        value = value[key] if key in (range(len(value)) if isinstance(value, list) else value) else None
    return value


def _changes(value: Any, path: Sequence[Any], place: Any, word: str) -> Iterator[Any]:
    if isinstance(place, str | type(None)) and path:
        yield _with(value, path, word)
    elif isinstance(place, dict):
        yield _with(value, path, {**place, word: word})


def _with(value: Any, path: Sequence[Any], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(value[path[0]], path[1:], new)
    return copy


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "'><svg onload=alert(1)>"
    shutil.copytree(SAMPLE, folder)
    manifest = folder / "run.json"

    def is_run(value: Any) -> bool:
        manifest.write_text(json.dumps(value))
        try:
            return bool(load_run(folder).summary.stages)
        except WithstandError:
            return False

    manifest.write_text(json.dumps(poisoned(json.loads(manifest.read_text()), is_run)))
    records = [json.loads(encode_record(record)) for record in RunFolder.open(folder).records()]
    for old in folder.glob("records*"):
        old.unlink()
    lines = [json.dumps(poisoned(record, _is_record)) for record in records]
    (folder / "records.jsonl").write_text("\n".join([*lines, ""]))
    return folder


def _is_record(value: Any) -> bool:
    try:
        return decode_record(json.dumps(value).encode()) is not None
    except (ValueError, WithstandError):
        return False


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of result files whose strings, labels, headings and names are hostile."""
    folder = tmp_path_factory.mktemp("foreign") / '"><img src=x onerror=alert(1)>'
    folder.mkdir()
    everything = lambda _: True  # noqa: E731
    detailed = poisoned({**DETAILED, "label": "a"}, everything)
    (folder / "<b>.json").write_text(json.dumps([detailed, {**detailed, "framework": WORDS[1], "completed": 1}]))
    (folder / "a.jsonl").write_text(
        json.dumps(poisoned(json.loads(SGLANG_LINE.replace("Infinity", "5").replace("NaN", "5")), everything))
    )
    block = VLLM_BLOCK.replace("Failed requests:  ", f"{WORDS[0]}: {WORDS[2]}\nBackend: {WORDS[3]}\nFailed requests:  ")
    (folder / "log.txt").write_text(
        f"## {WORDS[2][:50]}\nmodel: {WORDS[0]}\n--model {WORDS[8]} --num-prompts 100\n{block}"
    )
    asked = VLLM_JSON | {"request_rate": 4.0, "max_concurrency": None}
    runs = [
        asked | {"framework": word, "model_id": word, word: word, "mean_ttft_ms": 50.0 + i}
        for i, word in enumerate(WORDS)
    ]
    (folder / "runs.json").write_text(json.dumps(runs))
    return folder


PAGES = {
    "report of a run": ["report", "{run}"],
    "report of foreign files": ["report", "{foreign}"],
    "report of both": ["report", "{run}", "{foreign}"],
    "comparison": ["compare", "--force", '"><svg onload>={run}', "b={foreign}"],
    "comparison of foreign files": ["compare", "--force", "--by", "framework", "{foreign}"],
}


@pytest.fixture(params=PAGES)
def made(request: pytest.FixtureRequest, run_folder: Path, foreign: Path, tmp_path: Path) -> Callable[[str], str]:
    """The same in a form."""

    def make(suffix: str) -> str:
        page = tmp_path / f"page.{suffix}"
        argv = [word.format(run=run_folder, foreign=foreign) for word in PAGES[request.param]]
        assert exit_code_of([*argv, "--output", str(page)]) == 0
        return page.read_text("utf-8")

    return make


def test_no_word_of_a_file_is_markup(made: Callable[[str], str]) -> None:
    page = made("html")
    tags = parsed(page)
    assert not tags.open
    assert DEED[:20] in page, "the words are in the page, as text"
    assert tags.seen.count("script") == page.count("</script>"), "only those that the page was made with"
    assert not {"img", "base", "iframe", "object", "embed", "link"} & set(tags.seen)
    assert not [name for name, _ in tags.attributes if name.startswith("on")]
    assert not [value for name, value in tags.attributes if name in URLS and not str(value).startswith("#")]
    assert [value for name, value in tags.attributes if name == "http-equiv"] == ["Content-Security-Policy"]


def test_no_word_of_a_file_is_markup_in_markdown(made: Callable[[str], str]) -> None:
    page = made("md")
    assert DEED[:20] in page
    assert {tag.lstrip("/") for tag in _MARKDOWN_TAG.findall(page)} <= {"sub", "sup", "details", "summary"}
    assert not [c for c in page if ord(c) < 32 and c != "\n"]


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_runs_none_of_it(made: Callable[[str], str], tmp_path: Path) -> None:
    document, console = browse(measured(made("html")), tmp_path, 1000)
    assert "data-done" not in document
    assert 'data-charts="drawn"' in document
    assert console == ""
