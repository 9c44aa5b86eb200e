"""Damaged and foreign files through the real verbs: a result, or one sentence; never a traceback, never another number.

``WITHSTAND_FUZZ=5000`` tries as many of each.
"""

import json
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shared
from foreign import DETAILED, SGLANG_LINE, VLLM_BLOCK, VLLM_JSON
from forms import FORMS
from mutations import file_mutant, unfounded
from withstand.cli import crash
from withstand.cli.entry import exit_code_of
from withstand.interop import read
from withstand.runs import open_import

EXAMPLES = int(os.environ.get("WITHSTAND_FUZZ", "30"))
LARGEST = 40_000
SMALL = [
    VLLM_BLOCK,
    json.dumps(VLLM_JSON),
    json.dumps(DETAILED),
    SGLANG_LINE,
    f"{VLLM_BLOCK}\n{json.dumps(VLLM_JSON)}\n",
]
REAL = sorted(path for path in (shared.ROOT / "data" / "results").glob("*") if path.stat().st_size < LARGEST)
WRITTEN = st.one_of(*FORMS.values()).map(lambda sample: sample.text)
TEXTS = st.one_of(
    st.sampled_from(SMALL), WRITTEN, *([st.sampled_from(REAL).map(lambda path: path.read_text("utf-8"))] * bool(REAL))
)
SETTINGS = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
CODES = {"audit": {0, 1, 3}, "report": {0, 2, 3}, "compare": {0, 2, 3}, "import": {0, 2, 3}}
FORMATS = {
    "audit": ["text", "json", "markdown"],
    "report": ["text", "json", "markdown", "csv", "html"],
    "compare": ["text", "json", "markdown", "csv", "html", "llmd"],
}


def no_fault(e: Exception) -> str:
    raise e


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Calls a verb and judges what may be judged of any call."""
    monkeypatch.setattr(crash, "sentence", no_fault)

    def call(*argv: str) -> tuple[int, str]:
        code = exit_code_of(list(argv))
        told = capsys.readouterr()
        assert code in CODES[argv[0]], told.err
        if code in {2, 3} and argv[0] != "audit":
            _one_sentence(told.err)
        assert not [c for c in told.out if ord(c) < 32 and c not in "\n\r\t"]
        return code, told.out

    return call


def _one_sentence(said: str) -> None:
    (line,) = [line for line in said.splitlines() if line.startswith("withstand: ")]
    assert line.endswith((".", ".)")), line
    assert len(line) > 20


def _strict(text: str) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    return json.loads(text, parse_constant=refuse)


@SETTINGS
@given(data=st.data())
def test_a_damaged_file_is_read_right_or_refused_in_a_sentence(
    data: st.DataObject, verb: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    path, kept = folder / "result.json", folder / "kept"
    path.write_bytes(data.draw(file_mutant(data.draw(TEXTS))))
    good = verb("import", str(path), "--output-dir", str(kept))[0] == 0
    if good:
        assert unfounded(open_import(kept).runs, read._text(path)) == []
    name, form = data.draw(st.sampled_from([(name, form) for name in FORMATS for form in FORMATS[name]]))
    paths = [str(path)] if name != "compare" else [f"a={path}", f"b={path}", "--force"]
    code, out = verb(name, *paths, "--format", form)
    if code in {0, 1} and form == "json":
        _strict(out)
    assert (code in {0, 1}) <= good, "only what can be imported is reported"
