"""``withstand ui``: the page that lists runs, follows them, opens their reports and compares them."""

import webbrowser
from pathlib import Path

import click

from withstand.cli.options import TYPED_PATH, Verb
from withstand.cli.output import write_result
from withstand.errors import UsageError, extra
from withstand.files import why_closed

_PORT = 8410
_FOLDER = Path("runs")
"""It may come to be: the page lists what is measured from now on."""


@click.command("ui", cls=Verb)
@click.argument("folder", metavar="[DIR]", required=False, type=TYPED_PATH, default=_FOLDER)
@click.option("--port", type=click.IntRange(0, 65_535), default=_PORT, help=f"{_PORT} by default; 0 = any.")
@click.option("--open", "opened", is_flag=True, help="Open the page in a browser.")
def verb(folder: Path, port: int, *, opened: bool) -> None:
    """Show runs on a page: follow them, open their reports, compare them.

    All that was measured below DIR is listed, by default below runs. Only this machine can reach the page; from another
    one take `ssh -L 8410:127.0.0.1:8410 HOST`. Ctrl-C ends it.
    """
    try:
        from withstand.ui.serve import serve  # noqa: PLC0415  an extra
    except ImportError:
        raise UsageError(f"The page is not installed: {extra('ui')}.") from None

    if why := why_closed(folder):
        raise UsageError(f"{folder} {why}.")
    if not folder.is_dir() and folder != _FOLDER:
        raise UsageError(f"{folder} is no folder; give the one in which runs lie, such as runs.")

    def ready(url: str) -> None:
        write_result(f"{url} shows {folder}. Ctrl-C ends it.")
        if opened:
            webbrowser.open(url)

    serve(folder, port, ready)
