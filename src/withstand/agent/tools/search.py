"""Search: over files of one's own, or by a SearXNG server. Other kinds come by entry points ``withstand.searches``."""

from pathlib import Path
from typing import Protocol

import httpx
import msgspec

from withstand import plugins
from withstand.agent.config import SearchConfig
from withstand.agent.tools.bm25 import Ranking
from withstand.agent.tools.tool import Example, Tool, ToolError
from withstand.errors import SpecError

OUR_CORPUS = Path(__file__).parents[1] / "corpus"
_PASSAGE_CHARS = 800
_CORPUS_BYTES = 64 << 20


class Found(msgspec.Struct, frozen=True):
    """One result."""

    title: str
    where: str
    text: str


class Search(Protocol):
    """Where is looked."""

    async def find(self, query: str, most: int) -> list[Found]:
        """The best results first.

        Raises:
            ToolError: it cannot be looked.
        """


def search_tool(config: SearchConfig) -> Tool:
    """The tool.

    Raises:
        UsageError: the kind is not known, or has nothing to look in.
    """
    search: Search = plugins.load("searches", config.kind, "search.kind")(config)

    async def run(query: str) -> str:
        found = await search.find(query, config.results)
        if not found:
            return "Nothing was found. Try other words."
        return "\n\n".join(f"[{i}] {each.title} ({each.where})\n{each.text}" for i, each in enumerate(found, 1))

    return Tool(
        name="search",
        purpose="Searches for facts and returns the passages that fit best.",
        argument="query",
        meaning="a few words that the passage should hold",
        run=run,
        example=Example(
            question="Tell me who wrote Hamlet.",
            argument="wrote Hamlet",
            result="[1] Hamlet (plays.md)\nHamlet is a play that William Shakespeare wrote around 1600.",
            answer="William Shakespeare wrote Hamlet.",
        ),
    )


class Corpus:
    """Passages of the .md and .txt files of a folder; a passage is a paragraph under its file's title."""

    def __init__(self, config: SearchConfig) -> None:
        folder = Path(config.path) if config.path else OUR_CORPUS
        try:
            self.passages = _read(folder)
        except OSError as e:
            raise SpecError(f"search.path: {e.filename} cannot be read: {e.strerror}.") from None
        if not self.passages:
            raise SpecError(f"search.path: {folder} holds no .md or .txt file with text.")
        self._ranking = Ranking([f"{each.title} {each.title} {each.text}" for each in self.passages])

    async def find(self, query: str, most: int) -> list[Found]:
        """By BM25; the title counts twice."""
        return [self.passages[i] for i in self._ranking.best(query, most)]


def _read(folder: Path) -> list[Found]:
    found: list[Found] = []
    size = 0
    for path in sorted(p for p in folder.rglob("*") if p.suffix in {".md", ".txt"} and p.is_file()):
        size += path.stat().st_size
        if size > _CORPUS_BYTES:
            raise SpecError(f"search.path: {folder} has more than {_CORPUS_BYTES >> 20} MiB of text; take less.")
        found += _passages(path.read_text("utf-8", "replace"), str(path.relative_to(folder)))
    return found


def _passages(text: str, where: str) -> list[Found]:
    title, found = where, []
    for block in (b.strip() for b in text.split("\n\n")):
        body = block
        if block.startswith("#"):
            head, _, body = block.partition("\n")
            title = head.lstrip("# ").strip()
        starts = range(0, len(body), _PASSAGE_CHARS)
        found += [Found(title, where, " ".join(body[at : at + _PASSAGE_CHARS].split())) for at in starts]
    return found


class SearXNG:
    """A server of SearXNG with its JSON format switched on."""

    def __init__(self, config: SearchConfig) -> None:
        if not config.url:
            raise SpecError("search.url: searxng needs the server's address.")
        self._url = config.url.rstrip("/") + "/search"

    async def find(self, query: str, most: int) -> list[Found]:
        """What it says."""
        try:
            async with httpx.AsyncClient(trust_env=False) as client:
                answer = await client.get(self._url, params={"q": query, "format": "json"})
                answer.raise_for_status()
            rows = answer.json()["results"][:most]
            return [Found(str(r["title"]), str(r["url"]), str(r.get("content", ""))[:_PASSAGE_CHARS]) for r in rows]
        except httpx.HTTPError as e:
            raise ToolError(f"The search server does not answer ({type(e).__name__}).") from None
        except (ValueError, KeyError, TypeError):
            raise ToolError("The search server's answer cannot be read.") from None
