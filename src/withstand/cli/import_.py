"""``withstand import``: other tools' result files → a folder that ``withstand report`` shows."""

from pathlib import Path

import click

from withstand.app.import_ import import_files
from withstand.cli.options import TYPED_PATH, Verb
from withstand.cli.output import say, write_result
from withstand.interop.values import plain
from withstand.report.imported import imported_text


@click.command("import", cls=Verb)
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=TYPED_PATH)
@click.option("--output-dir", type=TYPED_PATH, metavar="DIR", required=True, help="A new folder for the runs.")
def verb(files: tuple[Path, ...], output_dir: Path) -> None:
    """Read other tools' result files into a folder of their own.

    FILE is a result file or folder of vLLM, SGLang, GuideLLM, AIPerf, genai-perf, genai-bench, llmperf,
    inference-perf, llm-d, InferenceMAX or evalscope, or a log with a printed result. Its format is found by content.
    """
    imported = import_files(files, output_dir)
    for refused in imported.refused:
        say(f"Left out, {plain(refused.position)}: {plain(refused.reason)}")
    write_result(imported_text(imported.runs))
    say(f"Written: {output_dir}; show it by: withstand report {output_dir}")
