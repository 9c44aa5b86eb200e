"""Files of every format, made from what is known: exactly that is read, and nothing that was never written."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from forms import FORMS
from requests_known import REQUESTS, WITH_GAPS, WITHOUT_INSTANTS, WRITERS, Asked
from truth import Sample, differences, twins
from withstand.interop.read import read_path, read_text
from withstand.record import Status
from withstand.runs import keep_import, open_import

EXAMPLES = int(os.environ.get("WITHSTAND_FUZZ", "20"))
QUICK = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("form", FORMS)
@QUICK
@given(data=st.data())
def test_what_was_written_is_read_and_nothing_else(form: str, data: st.DataObject) -> None:
    sample = data.draw(FORMS[form])
    assert differences(read_text(sample.text, "f").runs, sample) == []


@pytest.mark.parametrize("form", WRITERS)
@QUICK
@given(requests=REQUESTS)
def test_single_requests_are_facts_to_the_microsecond(form: str, requests: list[Asked]) -> None:
    (run,) = read_text(WRITERS[form](requests), "f").runs
    assert run.facts is not None
    assert (run.facts.starts_known, run.facts.gaps_known) == (form not in WITHOUT_INSTANTS, form in WITH_GAPS)
    first_ns = min(request.sent_ns for request in requests)
    for request, record in zip(_in_order(form, requests), run.facts.records, strict=True):
        assert (record.status is Status.OK) == (not request.failed)
        stamps = (
            []
            if request.failed
            else request.stamps_ns
            if form in WITH_GAPS
            else request.stamps_ns[:: len(request.gaps_ns)]
        )
        assert record.output_tokens == (None if request.failed else request.tokens)
        sent_ns = record.sent_ns or 0
        assert [at - sent_ns for at in record.chunk_ns] == pytest.approx(stamps, abs=1000)
        assert form in WITHOUT_INSTANTS or sent_ns == pytest.approx(request.sent_ns - first_ns, abs=1000)
    good = [request for request in requests if not request.failed]
    assert run.numbers["completed"] == len(good)
    assert run.numbers["total_output_tokens"] == sum(request.tokens for request in good)
    mean_ms = sum(request.ttft_ns for request in good) / len(good) / 1e6
    assert run.stats["ttft"].mean == pytest.approx(mean_ms, abs=0.001)


def _in_order(form: str, requests: list[Asked]) -> list[Asked]:
    """GuideLLM keeps them by how they ended."""
    return sorted(requests, key=lambda request: request.failed) if form == "guidellm" else requests


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
def test_a_folder_of_several_files_has_the_runs_of_each(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("folder")
    samples = data.draw(st.lists(st.one_of(*FORMS.values()), min_size=2, max_size=4))
    assume(not twins([run for sample in samples for run in sample.runs]))
    for i, sample in enumerate(samples):
        (folder / f"{i}.json").write_text(sample.text, "utf-8", newline="")
    together = Sample("", tuple(run for sample in samples for run in sample.runs))
    assert differences(read_path(folder).runs, together) == []
