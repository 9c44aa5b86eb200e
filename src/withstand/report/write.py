"""Puts ``summary.json`` and ``report.html`` into a run folder. A reader in between sees the old file or the new one."""

import os
from collections.abc import Sequence
from pathlib import Path

from withstand.errors import StorageError
from withstand.metrics.series import StageSeries
from withstand.metrics.summary import Summary
from withstand.report.about import About
from withstand.report.html import render_html
from withstand.report.json import summary_json

SUMMARY_NAME = "summary.json"
REPORT_NAME = "report.html"


def write_reports(folder: Path, summary: Summary, series: Sequence[StageSeries], about: About) -> Path:
    """Write both; the path of the page.

    Raises:
        StorageError: the disk is full, read-only, or not ours.
    """
    report = folder / REPORT_NAME
    _write(folder / SUMMARY_NAME, summary_json(summary))
    _write(report, render_html(summary, series, about).encode())
    return report


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as e:
        _discard(temporary)
        raise StorageError(
            f"{path} cannot be written: {e.strerror}. Free some space or make the folder writable, "
            "then `withstand report` writes it again; the records are kept."
        ) from None


def _discard(temporary: Path) -> None:
    try:
        temporary.unlink(missing_ok=True)
    except OSError:
        return  # a file system that refuses the write may refuse this too; the error is on its way already
