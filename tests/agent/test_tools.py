"""Tools by themselves: what they compute, find and read, and what they must not."""

import ast
import asyncio
import contextlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.agent.config import FilesConfig, HttpConfig, SearchConfig
from withstand.agent.tools.allowed import is_public, may_fetch
from withstand.agent.tools.bm25 import Ranking
from withstand.agent.tools.calculator import calculate
from withstand.agent.tools.files import read, read_file
from withstand.agent.tools.tool import ToolError
from withstand.workload.datasets.agent import read_tasks
from withstand.workload.expected import agrees


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("4817 * 263", "1266871"),
        ("(58 + 67) * (91 - 34)", "7125"),
        ("0.1 + 0.2", "0.3"),
        ("2^10", "1024"),
        ("7 ÷ 2", "3.5"),
        ("-3 ** 2", "-9"),
        ("round(84 * 0.85, 2)", "71.4"),
        ("sqrt(227529) =", "477"),
        ("factorial(20)", "2432902008176640000"),
        ("max(1, 2, 3) % 2", "1"),
    ],
)
def test_arithmetic(expression: str, value: str) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('id')",
        "().__class__",
        "'a' * 9",
        "[1] * 9",
        "lambda: 1",
        "1 if True else 2",
        "open('x')",
        "9**9**9",
        "2**99999",
        "2.5**-1e999",
        "(2**2000) * (2**2000)",
        "factorial(999999)",
        "1e308 * 10",
        "(-8) ** 0.5",
        "1,234 + 1",
        "round(1.5, 10**9)",
        "1/0",
        "0 ** -1",
        "True + 1",
        "max(*[1, 2])",
        "round(number=1)",
        "(" * 399,
        "1+" * 150 + "1",
        "9" * 401,
        "",
        "\0",
    ],
)
def test_what_is_no_bounded_arithmetic_is_refused(expression: str) -> None:
    with pytest.raises(ToolError):
        calculate(expression)


_NUMBERS = st.integers(0, 999).map(str)
_EXPRESSIONS = st.recursive(
    _NUMBERS,
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda t: f"({''.join(t)})"),
    max_leaves=8,
)


@given(_EXPRESSIONS)
def test_whole_numbers_are_as_pythons(expression: str) -> None:
    assert calculate(expression) == str(eval(compile(ast.parse(expression, mode="eval"), "", "eval")))


@given(st.text(alphabet="0123456789+-*/%().e, absqrtmx", max_size=60))
def test_any_text_is_a_number_or_a_refusal(text: str) -> None:
    with contextlib.suppress(ToolError):
        assert calculate(text)


def test_bm25_prefers_the_rarer_word_and_the_shorter_passage() -> None:
    ranking = Ranking(["the sea and the harbour", "the harbour " * 20, "a lighthouse", ""])
    assert ranking.best("harbour", 9) == [0, 1] or ranking.best("harbour", 9) == [1, 0]
    assert ranking.best("lighthouse harbour", 1) == [2]
    assert ranking.best("nothing of it", 9) == []
    assert Ranking([]).best("x", 3) == []


def test_every_task_can_be_solved_from_our_corpus() -> None:
    pytest.importorskip("httpx", reason="the agent's extra is not installed: make test-agent")
    from withstand.agent.tools.search import Corpus  # noqa: PLC0415

    corpus = Corpus(SearchConfig())
    for task in read_tasks(None):
        if task.kind == "search":
            found = asyncio.run(corpus.find(task.question, 3))
            assert any(agrees(each.text, task.answers) for each in found), task.question


def test_files_are_read_from_the_allow_list_and_nowhere_else(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "a.txt").write_text("good " * 100)
    (inside / "raw.bin").write_bytes(b"a\0b")
    (outside / "secret").write_text("secret")
    (inside / "link").symlink_to(outside / "secret")
    os.mkfifo(inside / "pipe")
    allowed = [inside.resolve()]
    assert read("a.txt", allowed, 9) == "good good"
    assert read(str(inside / "a.txt"), allowed, 4) == "good"
    for path in ("../out/secret", str(outside / "secret"), "link", "raw.bin", "pipe", ".", "none", "a\0b", "x" * 5000):
        with pytest.raises(ToolError):
            read(path, allowed, 99)
    assert asyncio.run(read_file(FilesConfig(allow=(str(inside),))).run("a.txt")).startswith("good")


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("https://docs.org/guide", True),
        ("https://docs.org/guide/a?b=c", True),
        ("https://DOCS.org:443/guide/a", True),
        ("https://docs.org/guidebook", False),
        ("https://docs.org/", False),
        ("http://docs.org/guide", False),
        ("https://docs.org.evil.net/guide", False),
        ("https://docs.org@evil.net/guide", False),
        ("https://docs.org:8443/guide", False),
        ("https://docs.org/guide/../admin", False),
        ("https://docs.org/guide/%2e%2e/admin", False),
        ("https://docs.org/guide\\..\\admin", False),
        ("https://docs.org/guide/..;/admin", False),
        ("https://docs.org/guide/..%3b/admin", False),
        ("https://docs.org/guide/%252e%252e/admin", False),
        ("https://docs.org/guide/...%252fadmin", False),
        ("https://docs.org/guide/.../admin", False),
        ("https://docs.org/guide/a?b=50%25;c", True),
        ("file:///etc/passwd", False),
        ("https://docs.org:bad/guide", False),
        ("", False),
    ],
)
def test_which_addresses_may_be_fetched(url: str, may: bool) -> None:
    assert may_fetch(url, ["https://docs.org/guide"]) is may


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        *((a, False) for a in ("127.0.0.1", "10.1.2.3", "169.254.169.254", "192.168.0.1", "100.64.0.1", "0.0.0.0")),
        *((a, False) for a in ("168.63.129.16", "::ffff:168.63.129.16")),
        *(
            (a, False)
            for a in ("::1", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::")
        ),
        *((a, False) for a in ("224.0.0.1", "ff02::1")),
        *((a, False) for a in ("fec0::1", "64:ff9b:1::7f00:1", "::127.0.0.1", "::ffff:0:127.0.0.1", "3fff::1")),
        *((a, True) for a in ("::ffff:93.184.216.34", "64:ff9b::5db8:d822", "2002:5db8:d822::")),
    ],
)
def test_which_numbers_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


class _Site(BaseHTTPRequestHandler):
    pages: ClassVar[dict[str, tuple[int, dict[str, str], bytes]]] = {
        "/ok/page": (
            200,
            {"content-type": "text/html"},
            b"<head><title>x</title></head><p>One &amp; two</p><script>no()</script><p>three",
        ),
        "/ok/away": (302, {"location": "/secret"}, b""),
        "/ok/on": (302, {"location": "page"}, b""),
        "/ok/loop": (302, {"location": "/ok/loop"}, b""),
        "/ok/image": (200, {"content-type": "image/png"}, b"png"),
        "/ok/large": (200, {"content-type": "text/plain"}, b"x" * 100_000),
        "/secret": (200, {"content-type": "text/plain"}, b"secret"),
    }

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        status, headers, body = self.pages.get(self.path, (404, {}, b""))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):  # whoever has had enough leaves
            self.wfile.write(body)


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://localhost:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_pages_are_fetched_from_the_allow_list_and_nowhere_else(site: str) -> None:
    pytest.importorskip("httpx", reason="the agent's extra is not installed: make test-agent")
    from withstand.agent.tools.fetch import fetched  # noqa: PLC0415

    config = HttpConfig(allow=(f"{site}/ok",), private=True, bytes_max=1000)
    assert asyncio.run(fetched(f"{site}/ok/page", config)) == "One & two\nthree"
    assert asyncio.run(fetched(f"{site}/ok/on", config)) == "One & two\nthree"
    assert asyncio.run(fetched(f"{site}/ok/large", config)) == "x" * 1000
    for path, why in (
        ("/ok/away", "not allowed"),
        ("/secret", "not allowed"),
        ("/ok/loop", "redirected"),
        ("/ok/image", "no text"),
        ("/ok/none", "404"),
    ):
        with pytest.raises(ToolError, match=why):
            asyncio.run(fetched(site + path, config))
    with pytest.raises(ToolError, match="public Internet"):
        asyncio.run(fetched(f"{site}/ok/page", HttpConfig(allow=(f"{site}/ok",))))
