"""The run folder: manifest and records on disk, written so that nothing finished is ever lost."""

from withstand.runs.environment import allowed_cores, epoch_ns, machine_facts, still_runs, this_process
from withstand.runs.folder import RunFolder, free_bytes, manifest_of
from withstand.runs.imported import imported_of, is_import, keep_import, open_import
from withstand.runs.in_turn import AskedSide, AskedTurns, TurnsFolder
from withstand.runs.lines import WHOLE, Share
from withstand.runs.manifest import NOT_MISSED, Manifest, RunState, StageEntry, TokenizerFacts, Writer
from withstand.runs.several import Asked, TargetsFolder
from withstand.runs.shelf import Shelf
from withstand.runs.site import SITE_NAME, Site, site_of, write_site

__all__ = [
    "NOT_MISSED",
    "SITE_NAME",
    "WHOLE",
    "Asked",
    "AskedSide",
    "AskedTurns",
    "Manifest",
    "RunFolder",
    "RunState",
    "Share",
    "Shelf",
    "Site",
    "StageEntry",
    "TargetsFolder",
    "TokenizerFacts",
    "TurnsFolder",
    "Writer",
    "allowed_cores",
    "epoch_ns",
    "free_bytes",
    "imported_of",
    "is_import",
    "keep_import",
    "machine_facts",
    "manifest_of",
    "open_import",
    "site_of",
    "still_runs",
    "this_process",
    "write_site",
]
