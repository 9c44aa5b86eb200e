"""HTML pages as tests look at them: the tags that are in them, and what a real browser makes of them."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

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
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
MEASURE = """<script>
addEventListener("load", () => setTimeout(async () => {
  for (const control of document.querySelectorAll("form button, form input")) control.click();
  for (const control of document.querySelectorAll("form input[type=checkbox]")) if (!control.checked) control.click();
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  dispatchEvent(new Event("beforeprint"));
  dispatchEvent(new Event("afterprint"));
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const root = document.documentElement;
  root.dataset.window = innerWidth;
  root.dataset.body = Math.max(root.scrollWidth, document.body.scrollWidth);
  root.dataset.plots = [...document.querySelectorAll(".plot")].filter((p) => p.querySelector("svg, .empty")).length;
  const fits = (box) => box.scrollWidth > box.clientWidth && box.firstChild.offsetWidth <= box.clientWidth;
  root.dataset.needless = [...document.querySelectorAll(".scroll")].filter(fits).length;
  root.dataset.empty = document.querySelectorAll(".plot .empty").length;
}, 2000));
</script></body>"""


class Tags(HTMLParser):
    """Every element and attribute of a page, and whether what was opened was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in {"meta", "br", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    return tags


def measured(page: str) -> str:
    """The page with every control clicked and everything unfolded, telling its size; without its policy, to do so."""
    return POLICY.sub("", page).replace("</body>", MEASURE)


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
