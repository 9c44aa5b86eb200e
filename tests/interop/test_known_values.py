"""Files of every format, made from what is known: exactly that is read, and nothing that was never written."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import printers
import writers
from truth import Sample, differences, twins
from withstand.interop.read import read_path, read_text
from withstand.runs import keep_import, open_import

EXAMPLES = int(os.environ.get("WITHSTAND_FUZZ", "20"))
QUICK = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
FORMS: dict[str, st.SearchStrategy[Sample]] = {
    **{kind: writers.json_files(kind) for kind in writers.JSONS},
    "sweep_csv": writers.sweep_csv(), "load_test_csv": writers.load_test_csv(), "aiperf_csv": writers.aiperf_csv(),
    "blocks": printers.blocks(), "genai_perf_tables": printers.genai_perf_tables(),
    "evalscope_tables": printers.evalscope_tables(), "load_test_tables": printers.load_test_tables(),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@QUICK
@given(data=st.data())
def test_what_was_written_is_read_and_nothing_else(form: str, data: st.DataObject) -> None:
    sample = data.draw(FORMS[form])
    assert differences(read_text(sample.text, "f").runs, sample) == []


ENVELOPES = {
    "plain": lambda text: text.encode(),
    "bom": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-16-be": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "gzip": lambda text: gzip.compress(text.encode()),
}


@QUICK
@given(data=st.data())
def test_the_envelope_changes_no_number(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    sample = data.draw(st.one_of(*FORMS.values()))
    folder = tmp_path_factory.mktemp("envelope")
    path = folder / "result"
    path.write_bytes(data.draw(st.sampled_from(list(ENVELOPES.values())))(sample.text))
    imported = read_path(path)
    assert differences(imported.runs, sample) == []
    assert open_import(keep_import(imported, folder / "kept")) == imported


@QUICK
@given(data=st.data())
def test_a_folder_of_several_files_has_the_runs_of_each(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:  # fmt: skip
    folder: Path = tmp_path_factory.mktemp("folder")
    samples = data.draw(st.lists(st.one_of(*FORMS.values()), min_size=2, max_size=4))
    assume(not twins([run for sample in samples for run in sample.runs]))
    for i, sample in enumerate(samples):
        (folder / f"{i}.json").write_text(sample.text, "utf-8", newline="")
    together = Sample("", tuple(run for sample in samples for run in sample.runs))
    assert differences(read_path(folder).runs, together) == []
