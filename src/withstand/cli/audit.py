"""``withstand audit``: results → what may be concluded from them."""

from collections.abc import Callable, Mapping
from pathlib import Path

import click
import msgspec

from withstand.app.audit import audit_paths, exit_code
from withstand.audit.shape import Audit
from withstand.cli.delivery import deliver, form_of
from withstand.cli.options import TYPED_PATH, Verb
from withstand.cli.output import rendered
from withstand.report.audit_markdown import audit_markdown
from withstand.report.audit_text import print_audit

_FORMATS: Mapping[str, Callable[[Audit], str]] = {
    "text": lambda audit: rendered(lambda console: print_audit(audit, console)),
    "json": lambda audit: msgspec.json.format(msgspec.json.encode(audit), indent=2).decode() + "\n",
    "markdown": audit_markdown,
}
_SUFFIXES = {".json": "json", ".md": "markdown"}


@click.command("audit", cls=Verb)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=TYPED_PATH)
@click.option("--format", "form", type=click.Choice([*_FORMATS]), help="By default what FILE ends in, else text.")
@click.option("--output", type=TYPED_PATH, metavar="FILE", help="Write there instead of stdout.")
def verb(paths: tuple[Path, ...], form: str | None, output: Path | None) -> int:
    """Say what may be concluded from results, and what may not.

    PATH is a run folder, or a result file or folder of another tool. Exit code 1: a headline does not stand; 2: a
    path leads to nothing; 3: a file cannot be read, or nothing can be known.
    """
    form = form or form_of(output, _SUFFIXES)
    audit = audit_paths(paths)
    text = _FORMATS[form](audit)
    deliver(text, output)
    return exit_code(audit)
