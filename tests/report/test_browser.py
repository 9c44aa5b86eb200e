"""The page in a real browser: all charts are drawn, the network is asked for nothing, nothing sticks out."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from withstand.report.html import render_html

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=15000",
    "--dump-dom",
)
MEASURE = """<script>
addEventListener("load", () => setTimeout(async () => {
  for (const control of document.querySelectorAll("form button, form input")) control.click();
  dispatchEvent(new Event("beforeprint"));
  dispatchEvent(new Event("afterprint"));
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const root = document.documentElement;
  root.dataset.window = innerWidth;
  root.dataset.body = Math.max(root.scrollWidth, document.body.scrollWidth);
  root.dataset.plots = [...document.querySelectorAll(".plot")].filter((p) => p.querySelector("svg, .empty")).length;
}, 2000));
</script></body>"""
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


def browse(page: str, folder: Path, width: int) -> tuple[str, str]:
    """(the document when all scripts have run, what the console said)."""
    path = folder / "page.html"
    path.write_text(page, "utf-8")
    done = subprocess.run(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},1200", path.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def attribute(document: str, name: str) -> str | None:
    found = re.search(rf'<html[^>]* data-{name}="([^"]*)"', document)
    return found[1] if found else None


@pytest.mark.parametrize("which", ["sample", "single", "fallen"])
def test_all_charts_are_drawn_in_silence(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The page's policy forbids every request; a try would be told on the console."""
    sample: Any = request.getfixturevalue(which)
    document, console = browse(render_html(sample.summary, sample.series, sample.about), tmp_path, 1400)
    assert console == ""
    assert attribute(document, "charts") == "drawn"


def test_every_control_works_and_the_body_is_not_wider_than_a_small_window(sample: Any, tmp_path: Path) -> None:
    page = POLICY.sub("", render_html(sample.summary, sample.series, sample.about)).replace("</body>", MEASURE)
    document, console = browse(page, tmp_path, 800)
    assert console == ""
    width, body = attribute(document, "window"), attribute(document, "body")
    assert width
    assert body
    assert int(body) <= int(width) <= 800
    assert attribute(document, "charts") == "drawn"
    assert attribute(document, "plots") == "17"
