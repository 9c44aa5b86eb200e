"""All formats that can be written from a known truth, by name."""

from hypothesis import strategies as st

import printers
import writers
from truth import Sample

FORMS: dict[str, st.SearchStrategy[Sample]] = {
    **{kind: writers.json_files(kind) for kind in writers.JSONS},
    "sweep_csv": writers.sweep_csv(),
    "load_test_csv": writers.load_test_csv(),
    "aiperf_csv": writers.aiperf_csv(),
    "blocks": printers.blocks(),
    "genai_perf_tables": printers.genai_perf_tables(),
    "evalscope_tables": printers.evalscope_tables(),
    "newer_evalscope_tables": printers.newer_evalscope_tables(),
    "guidellm_tables": printers.guidellm_tables(),
    "load_test_tables": printers.load_test_tables(),
}
