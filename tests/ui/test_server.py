"""The server as a process: who may ask, what is made, how it ends."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from foreign import VLLM_JSON
from ui_server import UI, Ui, copied, needs_the_extra, ui


@pytest.fixture(scope="module")
def shelf(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    for name in ("one", "two"):
        copied(finished, folder / name)
    bare = copied(finished, folder / "bare")
    (bare / "report.html").unlink()
    broken = copied(finished, folder / "broken")
    (broken / "run.json").write_text('{"schema": 1}')
    (folder / "bench.json").write_text(json.dumps(VLLM_JSON))
    return folder


@pytest.fixture(scope="module")
def server(shelf: Path) -> Iterator[Ui]:
    with ui(shelf) as running:
        yield running


def ids(server: Ui) -> dict[str, str]:
    return {entry["name"]: entry["id"] for entry in server.entries()}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:9"}, 200),
        ({"host": "[::1]:80"}, 200),
        ({"host": "127.0.0.1"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "localhost@evil.example"}, 403),
        ({"host": "evil.example:80"}, 403),
        ({"host": "[::"}, 403),
        ({"host": ""}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "same-origin"}, 200),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}, 200),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}, 403),
    ],
)
def test_only_loopback_and_only_this_page_may_ask(server: Ui, headers: dict[str, str], status: int) -> None:
    for path in ("/", "/api/runs", "/assets/ui.css"):
        found, answered, _ = server.ask(path, **headers)
        assert found == status
        assert not [name for name in answered if name.startswith("access-control")]


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:1", "http://localhost"])
def test_nothing_is_made_for_another_site(server: Ui, origin: str | None) -> None:
    wish = json.dumps({"what": "csv", "ids": [ids(server)["one"]]}).encode()
    headers = {} if origin is None else {"origin": origin}
    assert server.ask("/api/make", method="POST", body=wish, **headers)[0] == 403
    assert server.ask("/api/make")[0] == 405


@pytest.mark.parametrize(
    "path",
    [
        "/page/../../etc/passwd",
        "/page/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/run/..%2f..",
        "/assets/../site.py",
        "/assets/%2e%2e/site.py",
        "/assets/plotly-basic.min.js",
        "/made/..%2frun.json",
        "/api/runs/one",
        "/api/runs/%00",
        "/api/runs/nothing/live",
        "/page/%ff",
        "/page/%ff/run.json",
    ],
)
def test_no_path_from_outside_is_followed(server: Ui, path: str) -> None:
    status, _, body = server.ask(path)
    assert status == 404
    assert b"root:" not in body


def test_all_pages_have_a_policy_and_those_of_folders_no_origin(server: Ui) -> None:
    own = server.ask("/")[1]["content-security-policy"]
    assert "default-src 'none'" in own
    assert "unsafe" not in own
    status, headers, body = server.ask(f"/page/{ids(server)['one']}/report.html")
    assert status == 200
    assert b"<!doctype html>" in body
    policy = headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts;")
    assert "allow-same-origin" not in policy
    assert "connect-src" not in policy  # the default, which is none
    for page in (headers, server.ask("/")[1]):
        assert page["x-content-type-options"] == "nosniff"
        assert page["cache-control"] == "no-store"


def test_what_the_monitoring_saw_lies_beside_the_report_and_nothing_else_does(
    server: Ui, shelf: Path, finished: Path
) -> None:
    one = copied(finished, shelf / "watched")
    (one / "board.html").write_text("<p>seen")
    time.sleep(0.5)  # one look answers all who ask at about the same time
    id_ = ids(server)["watched"]
    assert json.loads(server.ask(f"/api/runs/{id_}")[2])["entry"]["board"] == "board.html"
    assert server.ask(f"/page/{id_}/board.html")[::2] == (200, b"<p>seen")
    assert server.ask(f"/page/{ids(server)['one']}/board.html")[0] == 404
    for name in ("run.json", "summary.json", "records.jsonl.gz", "..%2frun.json"):
        assert server.ask(f"/page/{id_}/{name}")[0] == 404


def test_a_page_that_has_become_a_link_is_not_served(server: Ui, shelf: Path, finished: Path) -> None:
    one = copied(finished, shelf / "turned")
    time.sleep(0.5)  # one look answers all who ask at about the same time
    id_ = ids(server)["turned"]
    (one / "report.html").unlink()
    (one / "report.html").symlink_to("/etc/passwd")
    status, _, body = server.ask(f"/page/{id_}/report.html")
    assert status == 404
    assert b"root:" not in body


def test_reports_files_and_comparisons_are_made_and_nothing_is_written_there(server: Ui, shelf: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in shelf.rglob("*")}
    known = ids(server)
    for what, names, begins in (
        ("report", ("bare",), b"<!doctype html>"),
        ("report", ("bench.json",), b"<!doctype html>"),
        ("json", ("one",), b'{\n  "schema": 1'),
        ("csv", ("one",), b"phase,stage,"),
        ("comparison", ("one", "two"), b"<!doctype html>"),
    ):
        status, answer = server.make(what, *(known[name] for name in names))
        assert status == 200, answer
        found, headers, body = server.ask(answer["url"])
        assert found == 200
        assert body.startswith(begins), body[:100]
        assert headers["content-security-policy"].startswith("sandbox allow-scripts;")
        assert ("attachment" in headers.get("content-disposition", "")) is (what in {"json", "csv"})
    assert before == {path: path.stat().st_mtime_ns for path in shelf.rglob("*")}


def test_what_cannot_be_made_is_one_sentence(server: Ui) -> None:
    known = ids(server)
    status, answer = server.make("report", known["broken"])
    assert status == 422
    assert "is damaged" in answer["error"]
    assert "\n" not in answer["error"]
    assert server.make("comparison", known["one"])[0] == 400
    assert server.make("comparison", known["one"], "nothing")[0] == 404
    assert server.make("shell", known["one"])[0] == 400
    origin = server.url.rstrip("/")
    for body, expected in ((b"{", 400), (b"[" * 60_000, 400), (b"x" * 70_000, 413), (b'{"what":"csv"}', 400)):
        assert server.ask("/api/make", method="POST", body=body, origin=origin)[0] == expected


def test_a_folder_that_hangs_its_reader_is_given_up(finished: Path, tmp_path: Path) -> None:
    import asyncio  # noqa: PLC0415  only here

    from withstand.ui.maker import Maker, NotMadeError  # noqa: PLC0415  needs the extra's neighbours only here
    from withstand.ui.walk import walk  # noqa: PLC0415  same

    one = copied(finished, tmp_path / "shelf" / "one")
    (one / "records.jsonl.gz").unlink()
    os.mkfifo(one / "records.jsonl.gz")
    (place,) = walk((tmp_path / "shelf").resolve()).places

    async def made() -> str:
        return await Maker(tmp_path, limit_s=2).make("report", [place])

    with pytest.raises(NotMadeError, match="given up after 2 s"):
        asyncio.run(made())
    assert not [path for path in tmp_path.iterdir() if path.is_file()]


def test_a_taken_port_is_one_sentence(server: Ui, tmp_path: Path) -> None:
    command = [*UI, str(tmp_path), "--port", str(server.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert (
        done.stderr == f"withstand: Port {server.port} is taken; name another by --port, or 0 for any that is free.\n"
    )


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    needs_the_extra()
    (tmp_path / "file").write_text("")
    done = subprocess.run([*UI, str(tmp_path / "file")], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "is no folder" in done.stderr
    done = subprocess.run([*UI, "n" * 300], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "cannot be read: File name too long." in done.stderr


def test_without_the_extra_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['uvicorn'] = None; import withstand.cli as c; c.main()"
    command = [sys.executable, "-c", code, "ui"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "install withstand's extra 'ui' (pip install '.[ui]' in its checkout)" in done.stderr


def test_it_listens_on_loopback_only(server: Ui) -> None:
    listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    port = f":{server.port:04X} "
    heard = {line.split()[1] for line in listening.splitlines() if port in line and " 0A " in line}
    assert heard
    assert heard <= {f"0100007F{port.strip()}", f"00000000000000000000000001000000{port.strip()}"}


def test_a_hundred_pages_that_read_nothing_hold_up_neither_a_reader_nor_the_end(finished: Path, tmp_path: Path) -> None:
    copied(finished, tmp_path / "one", state="running", writer={"pid": os.getpid(), "started": None})
    with ui(tmp_path) as server, contextlib.ExitStack() as streams:
        (id_,) = ids(server).values()

        def stream() -> socket.socket:
            opened = streams.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
            opened.sendall(f"GET /api/runs/{id_}/live HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            return opened

        for _ in range(100):
            stream()
        read = b""
        reader = stream()
        while read.count(b"event: look") < 3:
            read += reader.recv(65_536)
        assert read.startswith(b"HTTP/1.1 200")
        assert b"text/event-stream" in read
        assert len(server.entries()) == 1
        began_s = time.monotonic()
        assert server.interrupt() == 0
        assert time.monotonic() - began_s < 20
        assert server.process.stderr
        assert not server.process.stderr.read()


def test_who_asks_only_for_the_head_of_a_stream_is_answered_at_once(finished: Path, tmp_path: Path) -> None:
    copied(finished, tmp_path / "one", state="running", writer={"pid": os.getpid(), "started": None})
    with ui(tmp_path) as server:
        (id_,) = ids(server).values()
        status, headers, _ = server.ask(f"/api/runs/{id_}/live", method="HEAD")
    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
