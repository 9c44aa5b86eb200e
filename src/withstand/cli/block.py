"""What is printed of a stage that is over: its title, the classic block, and how true it is."""

from withstand.cli.output import rendered
from withstand.metrics.summary import StageSummary
from withstand.report.classic import Style, classic
from withstand.report.client import stage_line


def stage_block(summary: StageSummary, style: Style = "vllm", *, backend: str | None = None) -> str:
    """The title, the classic block, and how true it is."""
    lines = [stage_title(summary.name, summary.phase), classic(summary, style, backend=backend)]
    if line := stage_line(summary):
        lines.append(rendered(lambda console: console.print(line, markup=False, highlight=False)).rstrip())
    return "\n".join(lines)


def stage_title(name: str, phase: str | None) -> str:
    """``sustained: rate-4``; the phase is not said twice."""
    return name if phase in {None, name} else f"{phase}: {name}"


def place_and_title(name: str, phase: str | None, index: int | None, of: int) -> str:
    """``[2/13] sustained: rate-4``; a warm-up has no place among those that are measured."""
    title = stage_title(name, phase)
    return title if index is None else f"[{index}/{of}] {title}"
