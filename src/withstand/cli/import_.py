"""``withstand import``: other tools' result files → a folder that ``withstand report`` shows."""

from pathlib import Path

import click

from withstand.app.import_ import import_files
from withstand.cli.options import TYPED_PATH, Verb
from withstand.cli.output import columns, say, write_result
from withstand.interop.values import plain
from withstand.report.imported import imported_text

_GOOD, _NOT_READ = 0, 3


@click.command("import", cls=Verb)
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=TYPED_PATH)
@click.option("--output-dir", type=TYPED_PATH, metavar="DIR", required=True, help="A new folder for the runs.")
def verb(files: tuple[Path, ...], output_dir: Path) -> int:
    """Read other tools' result files into a folder of their own.

    FILE is a result file or folder of vLLM, SGLang, GuideLLM, AIPerf, genai-perf, genai-bench, llmperf,
    inference-perf, llm-d, InferenceMAX or evalscope, or a log with a printed result. Its format is found by content.
    Exit code 3: a FILE holds no result; the others are kept.
    """
    kept = import_files(files, output_dir)
    for refused in (*kept.imported.refused, *kept.no_results):
        where, why = plain(refused.position), plain(refused.reason)
        say(f"Left out: {why}" if why.startswith(f"{where} ") else f"Left out, {where}: {why}")
    write_result(imported_text(kept.imported.runs, columns()))
    say(f"Written: {output_dir}; show it by: withstand report {output_dir}")
    return _NOT_READ if kept.no_results else _GOOD
