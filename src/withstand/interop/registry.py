"""All formats, and how a text is found to be one of them: by what it holds, never by its name.

JSON formats first, the more particular before the more general; then CSV, YAML, and whatever is printed in the text.
A new format is a module and a line here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from withstand.errors import FormatError, extra
from withstand.interop import (
    aiperf,
    curves,
    evalscope,
    genai_bench,
    guidellm,
    guidellm_console,
    guidellm_csv,
    guidellm_digest,
    guidellm_text,
    inference_perf,
    inferencemax,
    llmd,
    llmperf,
    load_test,
    serving_json,
    serving_text,
    strangers,
    tables,
    values,
)
from withstand.interop.blocks import lines_of
from withstand.interop.documents import Document, scattered, whole, without_halves
from withstand.interop.shape import ImportedRun, Refused
from withstand.interop.source import Place

Found = tuple[list[ImportedRun], list[Refused]]
_DEPTH_MAX = 3
_HEADER_MAX = 100_000
_COLUMNS_MIN = 3
_DAMAGES_MAX = 5
_NEARLY_ALL = 0.99
_DAMAGED = "a JSON value begins here and cannot be read to its end: it is damaged, or cut off."
_ITEMS_MAX = 100_000
_GUIDELLM_KEY = "time_to_first_token_ms:"
_YAML_MAX = 20_000_000


class Form(msgspec.Struct, frozen=True):
    """A JSON format: how it is known, and who reads it."""

    recognises: Callable[[Any], bool]
    read: Callable[[Any, Place], list[ImportedRun]]


class CsvForm(msgspec.Struct, frozen=True):
    """A CSV: how its header is known, and who reads its rows."""

    recognises: Callable[[Sequence[str]], bool]
    read: Callable[[Sequence[Sequence[str]], Place], list[ImportedRun]]
    is_even: bool = True
    """All rows have the cells of the first."""


_OBJECTS = (
    Form(guidellm.recognises, guidellm.read),
    Form(genai_bench.recognises, genai_bench.read),
    Form(aiperf.recognises, aiperf.read),
    Form(aiperf.recognises_record, aiperf.read_record),
    Form(inference_perf.recognises, inference_perf.read),
    Form(llmd.recognises, llmd.read),
    Form(inferencemax.recognises, inferencemax.read),
    Form(guidellm_digest.recognises, guidellm_digest.read),
    Form(evalscope.recognises, evalscope.read),
    Form(evalscope.recognises_columns, evalscope.read_columns),
    Form(llmperf.recognises, llmperf.read),
    Form(llmperf.recognises_digest, llmperf.read_digest),
    Form(serving_json.recognises, serving_json.read),
    Form(curves.recognises, curves.read),
)
_CSVS = (
    CsvForm(guidellm_csv.recognises, guidellm_csv.read),
    CsvForm(guidellm_csv.recognises_old, guidellm_csv.read_old),
    CsvForm(aiperf.recognises_table, aiperf.read_csv, is_even=False),
    CsvForm(load_test.recognises_csv, load_test.read_csv),
    CsvForm(serving_json.recognises_csv, serving_json.read_csv),
)
_LISTS = (
    Form(inferencemax.recognises_list, inferencemax.read_list),
    Form(llmperf.recognises_responses, llmperf.read_responses),
    Form(inference_perf.recognises_requests, inference_perf.read_requests),
    Form(evalscope.recognises_percentiles, evalscope.read_percentiles),
)
TOOLS = (
    "vLLM and SGLang (JSON, JSON lines, the printed block), GuideLLM, AIPerf, genai-perf, genai-bench, llmperf, "
    "inference-perf, llm-d, InferenceMAX, evalscope, the load-test CSV and tables, or curves in columns"
)


def find_runs(text: str, place: Place) -> Found:
    """Every run of a text, in the order of formats, and what only looks like one."""
    text = without_halves(text)
    document = whole(text)
    if document is not None:
        return _in_value(document.value, place, 0)
    found = scattered(text)
    damage = [Refused(place.at(d.position).position or "", _DAMAGED) for d in found.damaged[:_DAMAGES_MAX]]
    printed = [] if _is_nothing_else(text, found.documents) else _in_text(text, place)
    parts = [_in_documents(found.documents, place), ([], damage), *printed]
    runs = [run for part in parts for run in part[0]]
    refused = [refused for part in parts for refused in part[1]]
    stranger = None if runs or refused else strangers.named_text(text)
    return runs, [Refused(place.position or "", stranger)] if stranger else refused


def _is_nothing_else(text: str, documents: Sequence[Document]) -> bool:
    """JSON lines from end to end: nothing is printed between them."""
    return sum(d.end - d.start for d in documents) > _NEARLY_ALL * len(text)


def _in_documents(documents: Sequence[Document], place: Place) -> Found:
    records = [d.value for d in documents if isinstance(d.value, Mapping) and aiperf.recognises_record(d.value)]
    runs: list[ImportedRun] = aiperf.read_records(records, place) if records else []
    refused: list[Refused] = []
    for document in documents:
        if not (isinstance(document.value, Mapping) and aiperf.recognises_record(document.value)):
            found, no = _in_value(document.value, place.at(document.position), 0)
            runs += found
            refused += no
    return runs, refused


def _in_value(value: Any, place: Place, depth: int) -> Found:
    """A value of JSON, or the runs that lie within it."""
    forms = _OBJECTS if isinstance(value, Mapping) else _LISTS if isinstance(value, list) else ()
    form = next((form for form in forms if form.recognises(value)), None)
    if form:
        return form.read(value, place), []
    reason = _look_alike(value)
    if reason:
        return [], [Refused(place.position or "", reason)]
    return _within(value, place, depth)


def _within(value: Any, place: Place, depth: int) -> Found:
    runs: list[ImportedRun] = []
    refused: list[Refused] = []
    for name, item in _items(value) if depth < _DEPTH_MAX else ():
        if isinstance(item, Mapping | list):
            found, no = _in_value(item, place.at(name), depth + 1)
            runs += found
            refused += no
    return runs, refused


def _items(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())[:_ITEMS_MAX]
    return [(f"[{i}]", item) for i, item in enumerate(value[:_ITEMS_MAX])]


def _look_alike(value: Any) -> str | None:
    if not isinstance(value, Mapping):
        return strangers.named_list(value) if isinstance(value, list) else None
    if genai_bench.is_metadata(value):
        return "the description of a genai-bench experiment, without numbers: give its folder, or the files beside it."
    return strangers.named(value)


def _in_text(text: str, place: Place) -> list[Found]:
    """Printed results; a CSV and a YAML file are nothing else besides."""
    of_csv = _csv(text, place)
    if any(of_csv):
        return [of_csv]
    report = _in_value(_yaml(text), place, 0)
    if any(report):
        return [report]
    found = tables.find(text)
    printed = [
        aiperf.read_tables(found, place),
        evalscope.read_tables(found, place),
        load_test.read_tables(found, text, place),
    ]
    lines = lines_of(text)
    if guidellm_text.recognises(lines):
        printed.append(guidellm_text.read(lines, place))
    if guidellm_console.recognises(lines):
        printed.append(guidellm_console.read(lines, place))
    return [serving_text.read(text, place), *((runs, []) for runs in printed)]


def _csv(text: str, place: Place) -> Found:
    first = text.lstrip("\ufeff \r\n")[:_HEADER_MAX].split("\n", 1)[0]
    head = next(iter(tables.csv_rows(first)[0]), [])
    if len(head) < _COLUMNS_MIN:
        return [], []
    form = next((form for form in _CSVS if form.recognises(head)), None)
    if form is None:
        return [], []
    rows, broken = tables.csv_rows(text)
    odd = tables.csv_odd_lines(rows) if form.is_even else []
    refused = [Refused(f"line {n}", "its cells are not those of the header.") for n in odd[:_DAMAGES_MAX]]
    if broken:
        refused.append(Refused(f"line {broken}", "its quotes do not match: from here on the file is damaged."))
    rows = tables.csv_whole(rows) if form.is_even else rows
    return form.read(rows, place) if rows else [], refused


def _yaml(text: str) -> Mapping[str, Any]:
    """An llm-d report and GuideLLM's longer form are YAML; without its parser the user is told."""
    keys = {line.split(":", 1)[0] for line in text.splitlines() if line[:1].isalpha()}
    is_llmd = "version" in keys and keys & {"metrics", "results"}
    if not is_llmd and not ("benchmarks" in keys and _GUIDELLM_KEY in text):
        return {}
    if len(text) > _YAML_MAX:
        raise FormatError("A YAML file as large as this takes minutes to read: give the tool's JSON file.")
    try:
        return values.mapping(msgspec.to_builtins(msgspec.yaml.decode(text), str_keys=True))
    except ImportError:
        raise FormatError(f"This result is YAML: {extra('yaml')}.") from None
    except (msgspec.DecodeError, TypeError, ValueError, RecursionError):
        return {}
