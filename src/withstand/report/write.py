"""Puts ``summary.json`` and ``report.html`` into a run folder. A reader in between sees the old file or the new one."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from withstand.control.limit import Limit
from withstand.files import write_atomically
from withstand.metrics.series import StageSeries
from withstand.metrics.summary import Summary
from withstand.report.about import About
from withstand.report.board import BOARD_NAME
from withstand.report.html import render_html
from withstand.report.json import summary_json

SUMMARY_NAME = "summary.json"
REPORT_NAME = "report.html"


def write_reports(
    folder: Path, summary: Summary, series: Sequence[StageSeries], about: About, limit: Limit | None = None
) -> Path:
    """Write both; the path of the page, which leads to the board that lies beside it, if one does.

    Raises:
        StorageError: the disk is full, read-only, or not ours.
    """
    report = folder / REPORT_NAME
    if (folder / BOARD_NAME).is_file():
        about = msgspec.structs.replace(about, board=BOARD_NAME)
    write_atomically(folder / SUMMARY_NAME, summary_json(summary, limit))
    write_atomically(report, render_html(summary, series, about, limit).encode())
    return report
