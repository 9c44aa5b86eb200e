"""The whole examination, of real paths: a server itself, and our echo engine behind nginx, our gateway, a fake."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from gateways import Gateway, model
from hops import failing_relay, fake_relay, nginx
from withstand.app.doctor.echo import echo_engine
from withstand.app.doctor.examine import Means, examine, exit_code
from withstand.app.doctor.patient import Dose
from withstand.app.report import load_run
from withstand.cli.entry import exit_code_of
from withstand.doctor.finding import Diagnosis
from withstand.errors import TargetError
from withstand.metrics.doubts import DoubtKind
from withstand.spec import Target
from withstand.stack.ports import free_port
from withstand.testing import Schedule, TruthServer
from withstand.testing.truth.behaviours import chosen

SMALL = Dose(tokens=48, pairs=6, patience_s=10, itl_ms=2.5, notice_s=10)
BRIEF = Dose(tokens=32, pairs=6, patience_s=10, notice_s=10)
PACE = Schedule(ttft_ms=5, itl_ms=3, tokens=32)


def direct(server: TruthServer) -> Diagnosis:
    return examine(Target(base_url=server.base_url), Means(dose=BRIEF), lambda _: None)


def behind(hop: Callable[[str], str], dose: Dose = SMALL) -> Diagnosis:
    """With the echo engine behind a hop that is made for its URL."""
    port = free_port()
    url = hop(f"http://127.0.0.1:{port}")
    return examine(
        Target(base_url=url, model="truth"), Means(echo=("127.0.0.1", port), echo_wait_s=20, dose=dose), lambda _: None
    )


def verdicts(diagnosis: Diagnosis, *checks: str) -> dict[str, str]:
    found = {check: diagnosis.of(check) for check in checks}
    return {check: finding.verdict.value if finding else "missing" for check, finding in found.items()}


def said(diagnosis: Diagnosis, check: str) -> str:
    finding = diagnosis.of(check)
    assert finding is not None
    return finding.said


def test_a_good_server(capsys: pytest.CaptureFixture[str]) -> None:
    with TruthServer(PACE) as server:
        assert exit_code_of(["doctor", server.base_url, "--tokens", "32", "--pairs", "6", "--json"]) == 0
    diagnosis = msgspec.json.decode(capsys.readouterr().out, type=Diagnosis)
    assert not list(diagnosis.bad)
    good = ("stream.shape", "stream.framing", "stream.end", "usage.stream", "usage.fits", "fields.max_tokens")
    assert set(verdicts(diagnosis, *good).values()) == {"ok"}
    assert set(verdicts(diagnosis, "hop.ttft", "leaving.metrics").values()) == {"not tried"}
    assert said(diagnosis, "usage.fits").endswith("the engine's tokenizer")


def test_who_waits_hears_of_every_request() -> None:
    said, asked = list[str](), list[int]()
    with TruthServer(PACE) as server:
        target = Target(base_url=server.base_url)
        diagnosis = examine(target, Means(dose=BRIEF), said.append, lambda: asked.append(len(said)))
    assert len(asked) == diagnosis.requests - 1  # the first is asked before anything is examined
    assert {1, 2, 3, 4, 6} <= set(asked)  # in every chapter but that of leaving, where the engine must tell who runs


def test_a_field_that_alone_makes_requests_fail_is_named() -> None:
    """An agent whose calls a grammar ends had no answer at all with `ignore_eos`: "no good streamed answer"."""
    with TruthServer(PACE) as server, failing_relay(server.base_url, "ignore_eos") as url:
        diagnosis = examine(Target(base_url=url), Means(dose=BRIEF), lambda _: None)
    good = ("stream.shape", "usage.stream", "fields.max_tokens", "fields.max_completion_tokens")
    assert set(verdicts(diagnosis, *good).values()) == {"ok"}
    finding = diagnosis.of("fields.ignore_eos")
    assert finding is not None
    assert finding.verdict.value == "doubt"
    assert "requests fail with it, and not without: " in finding.said


def test_a_slow_path_is_asked_as_much_as_there_is_time_for() -> None:
    dose = msgspec.structs.replace(BRIEF, seconds=2)
    with TruthServer(Schedule(ttft_ms=40, itl_ms=30, tokens=400)) as server:
        diagnosis = examine(Target(base_url=server.base_url), Means(dose=dose), lambda _: None)
    left = [finding for finding in diagnosis.findings if finding.said.startswith("left out: 2 s are too few")]
    assert {finding.verdict.value for finding in left} == {"not tried"}
    assert {finding.cure for finding in left} == {"Give the examination more time by --seconds."}
    assert {"fields.temperature", "fields.seed"} <= {finding.check for finding in left}
    assert not list(diagnosis.bad)
    assert exit_code(diagnosis) == 0


def test_an_early_stop_shows_whether_it_can_be_forbidden() -> None:
    with TruthServer(Schedule(ttft_ms=5, itl_ms=1, tokens=48, stop_after=3)) as server:
        diagnosis = direct(server)
    assert set(verdicts(diagnosis, "fields.ignore_eos", "fields.min_tokens").values()) == {"ok"}


@pytest.mark.parametrize(
    ("behaviour", "findings"),
    [
        (
            "http10+joined:8+usage_inflated",
            {
                "stream.framing": ("doubt", "HTTP/1.0"),
                "stream.shape": ("wrong", "batches: one piece of"),
                "usage.fits": ("wrong", "160 tokens told, 32"),
            },
        ),
        ("no_stream", {"stream.shape": ("wrong", "one JSON body")}),
        ("http_500", {"stream.shape": ("wrong", "HTTP 500")}),
    ],
)
def test_what_a_server_does_wrong_is_named(behaviour: str, findings: dict[str, tuple[str, str]]) -> None:
    with TruthServer(PACE, behaviour=behaviour) as server:
        diagnosis = direct(server)
    for check, (verdict, words) in findings.items():
        finding = diagnosis.of(check)
        assert finding is not None
        assert (finding.verdict.value, words in finding.said) == (verdict, True), finding
    assert exit_code(diagnosis) == 1


def test_nginx_with_its_defaults_buffers_by_size(tmp_path: Path) -> None:
    with _entered(lambda upstream: nginx(tmp_path, upstream)) as hop:
        diagnosis = behind(hop)
    assert "buffers by size: pieces of 4.0 KiB" in said(diagnosis, "stream.shape")
    assert "HTTP/1.0" in said(diagnosis, "headers.upstream")
    kept = ("fields.bytes", "fields.kept", "headers.x-request-id", "errors.429", "errors.503", "errors.event")
    assert set(verdicts(diagnosis, *kept).values()) == {"ok"}
    assert exit_code(diagnosis) == 1


def test_nginx_without_buffering_is_well(tmp_path: Path) -> None:
    settings = ("proxy_buffering off", "proxy_http_version 1.1", 'proxy_set_header Connection ""')
    with _entered(lambda upstream: nginx(tmp_path, upstream, *settings)) as hop:
        diagnosis = behind(hop)
    assert not list(diagnosis.bad)
    left = ("leaving.stream", "leaving.prefill", "leaving.whole")
    assert "wrong" not in verdicts(diagnosis, *left).values()
    assert verdicts(diagnosis, "stream.shape", "errors.cut") == {"stream.shape": "ok", "errors.cut": "ok"}
    assert diagnosis.of("hop.ttft") is not None


def test_our_gateway_is_well(tmp_path: Path) -> None:
    for name in ("fastapi", "uvicorn", "uvloop"):
        pytest.importorskip(name, reason="the gateway's extra is not installed")
    made: list[Gateway] = []

    def hop(upstream: str) -> str:
        made.append(Gateway(tmp_path, model(upstream, name="truth")))
        return f"http://127.0.0.1:{made[0].port}"

    try:
        diagnosis = behind(hop)
    finally:
        for gateway in made:
            gateway.stop()
    assert not list(diagnosis.bad)
    checks = ("fields.bytes", "errors.429", "errors.503", "errors.event", "headers.upstream", "manners.x-request-id")
    assert set(verdicts(diagnosis, *checks).values()) == {"ok"}
    assert "server-timing" in said(diagnosis, "manners.hints")
    assert verdicts(diagnosis, "errors.unknown_model") == {"errors.unknown_model": "ok"}


def test_a_faked_stream_and_all_that_comes_with_it() -> None:
    with _entered(fake_relay) as hop:
        diagnosis = behind(hop, msgspec.structs.replace(SMALL, notice_s=0.5))
    wrong = {finding.check for finding in diagnosis.bad}
    assert "fakes the stream" in said(diagnosis, "stream.shape")
    assert "max_completion_tokens" in said(diagnosis, "fields.kept")
    assert "comes out as HTTP 200" in said(diagnosis, "errors.429")
    assert wrong >= {"errors.503", "errors.event", "errors.bad_json", "leaving.prefill", "leaving.whole"}
    assert exit_code(diagnosis) == 1


def test_an_echo_engine_that_nothing_leads_to() -> None:
    means = Means(echo=("127.0.0.1", 0), echo_wait_s=0.3, dose=SMALL)
    with TruthServer(PACE) as server, pytest.raises(TargetError, match="reached the echo engine"):
        examine(Target(base_url=server.base_url), means, lambda _: None)


def test_an_echo_engine_that_is_not_alone_tells_nothing(tmp_path: Path) -> None:
    port = free_port()
    with TruthServer(PACE) as other:
        engines = (other.base_url, f"http://127.0.0.1:{port}")
        gw = Gateway(tmp_path, model(*engines, name="truth", more='policy = "round_robin"'))
        with pytest.raises(TargetError, match="asks other engines besides the echo engine"):
            examine(
                Target(base_url=f"http://127.0.0.1:{gw.port}", model="truth"),
                Means(echo=("127.0.0.1", port), echo_wait_s=20, dose=SMALL),
                lambda _: None,
            )
        gw.stop()


def test_the_engine_ends_with_its_doctor() -> None:
    with echo_engine("127.0.0.1", 0, 5) as echo:
        assert echo.served("nothing") == []


# The verb, and runs.


def test_a_limit_is_no_fault_of_the_path(capsys: pytest.CaptureFixture[str]) -> None:
    """The 429 comes among the questions about fields, which were judged by it."""
    mix = {"plain": 0.99, "limited": 0.01}
    seed = next(s for s in range(1000) if 20 <= [chosen(mix, s, n) for n in range(100)].index("limited") < 24)
    with TruthServer(PACE, behaviour=mix, seed=seed) as server:
        assert exit_code_of(["doctor", server.base_url, "--tokens", "32", "--json"]) == 3
    told = capsys.readouterr()
    diagnosis = msgspec.json.decode(told.out, type=Diagnosis)
    assert "stopped the examination after 2" in (diagnosis.stopped or "")
    assert told.err.splitlines()[-1] == f"withstand: {diagnosis.stopped}"
    assert verdicts(diagnosis, "stream.shape", "manners.key") == {"stream.shape": "ok", "manners.key": "missing"}
    assert not any("429" in finding.said for finding in diagnosis.findings)


def test_a_limit_before_anything_was_heard(capsys: pytest.CaptureFixture[str]) -> None:
    with TruthServer(PACE, behaviour="limited") as server:
        assert exit_code_of(["doctor", server.base_url]) == 3
    assert "stopped the examination after 1 request (" in capsys.readouterr().err


def test_a_key_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCTOR_KEY", "sesame-open")
    with TruthServer(PACE, api_key="sesame-open") as server:
        target = Target(base_url=server.base_url, backend="openai", api_key_env="DOCTOR_KEY")
        diagnosis = examine(target, Means(dose=BRIEF), lambda _: None)
    assert said(diagnosis, "manners.key") == "without one: HTTP 401"
    assert verdicts(diagnosis, "stream.shape", "fields.max_tokens") == {"stream.shape": "ok", "fields.max_tokens": "ok"}
    assert b"sesame-open" not in msgspec.json.encode(diagnosis)


def test_a_server_that_closes_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    with TruthServer(PACE, behaviour="close_before_answer") as server:
        assert exit_code_of(["doctor", server.base_url]) == 3
    assert "gives no answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "code", "words"),
    [
        (["doctor", "ftp://x"], 2, "must begin with http"),
        (["doctor", __file__], 2, f"`withstand up {__file__} --check` asks a stack's engines"),
        (["doctor", "127.0.0.1:18101"], 2, "withstand: URL: '127.0.0.1:18101' must begin with http"),
        (["doctor", "http://u:p@x"], 2, "give the key by --api-key-env or --api-key-file."),
        (["doctor", "http://127.0.0.1:1"], 3, "No connection"),
        (["doctor", "http://x", "--echo", "--direct", "http://y"], 2, "one of the two"),
        (["doctor", "http://x", "--echo", "--echo-at", "here"], 2, "--echo-at"),
        (["doctor", "http://x", "--echo-at", "127.0.0.1:0"], 2, "--echo-at is where the engine of --echo listens"),
        (["doctor", "http://x", "--nginx", __file__], 2, "give one of the two"),
        (["doctor"], 2, "a URL, or --nginx FILE"),
        (["doctor", "http://x", "--api-key-env", "NO_SUCH"], 2, "variable NO_SUCH is not set, or empty. Name the"),
    ],
)
def test_mistakes_are_one_sentence(typed: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(typed) == code
    said = capsys.readouterr().err.strip().splitlines()
    assert words in said[-1]


@pytest.mark.parametrize(
    ("direct", "words"),
    [("127.0.0.1:1", "--direct: '127.0.0.1:1' must begin"), ("http://127.0.0.1:1", "and --direct right?")],
)
def test_the_engines_own_address_is_named(direct: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with TruthServer(PACE) as server:
        exit_code_of(["doctor", server.base_url, "--direct", direct])
    assert words in capsys.readouterr().err.strip().splitlines()[-1]


class WebServer(BaseHTTPRequestHandler):
    """It has pages, and takes no POST."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Not heard."""


@pytest.mark.parametrize("direct", [False, True])
def test_what_is_no_model_server_is_told_so_once(*, direct: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with TruthServer(PACE) as server, HTTPServer(("127.0.0.1", 0), WebServer) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        page = f"http://127.0.0.1:{web.server_port}"
        typed = [server.base_url, "--direct", page] if direct else [page, "--model", "m"]
        assert exit_code_of(["doctor", *typed]) == 3
        web.shutdown()
    assert capsys.readouterr().err == (
        f"withstand: {page} takes no request at /v1/chat/completions (HTTP 501: an HTML page), "
        "so it does not speak OpenAI's API. Is it the right address?\n"
    )


class Odd(BaseHTTPRequestHandler):
    """It answers as its path says: ``/200`` with a page, ``/307`` leads elsewhere, ``/silent`` not at all."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        kind = self.path.split("/")[1]
        if kind == "silent":
            time.sleep(10)
        page = b"<html>hello</html>"
        self.send_response(int(kind))
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Not heard."""


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("200", "a page for people"),
        ("502", "a page for people"),
        ("307", "leads elsewhere"),
        ("silent", "was too slow for the time"),
    ],
)
def test_what_gives_no_answer_of_a_model_is_told_so_once(
    path: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Odd) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        server.daemon_threads = True
        url = f"http://127.0.0.1:{server.server_port}/{path}"
        began_s = time.monotonic()
        assert exit_code_of(["doctor", url, "--model", "m", "--seconds", "1"]) == 3
        assert time.monotonic() - began_s < 8
        server.shutdown()
    (said,) = capsys.readouterr().err.splitlines()
    assert words in said


def test_a_ctrl_c_before_anything_was_found_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        words = [sys.executable, "-m", "withstand", "doctor", f"http://127.0.0.1:{silent.getsockname()[1]}"]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as doctor, silent.accept()[0] as asked:
            asked.recv(100)
            doctor.send_signal(signal.SIGINT)
            said = doctor.communicate(timeout=30)[1]
    assert (doctor.returncode, said) == (3, "withstand: Interrupted before anything was found.\n")


def test_a_ctrl_c_loses_nothing_that_was_found() -> None:
    with TruthServer(PACE) as server:
        words = [sys.executable, "-m", "withstand", "doctor", server.base_url, "--tokens", "32"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as doctor:
            assert doctor.stderr
            assert any(line.startswith("What the path does with keys") for line in doctor.stderr)
            doctor.send_signal(signal.SIGINT)
            found, said = doctor.communicate(timeout=30)
    assert doctor.returncode == 3
    assert "✓ How it streams" in found
    assert said.endswith("withstand: Interrupted; what was found until then is told.\n")


@pytest.mark.parametrize("direct", [False, True])
def test_a_refused_key_names_the_option_that_there_is(*, direct: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with TruthServer(PACE) as server, TruthServer(PACE, api_key="sesame-open") as closed:
        path, engine = (server, closed) if direct else (closed, server)
        assert exit_code_of(["doctor", path.base_url, "--direct", engine.base_url]) == 3
    said = capsys.readouterr().err.strip()
    assert said.endswith("by --direct-api-key-env." if direct else "by --api-key-env, or its file by --api-key-file.")


def test_a_run_has_its_diagnosis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    with TruthServer(PACE, behaviour="joined:8") as server:
        typed = ["run", "--base-url", server.base_url, "--doctor", "--num-prompts", "4", "--output-len", "24"]
        exit_code_of([*typed, "--output-dir", str(folder), "--quiet"])
    assert json.loads((folder / "doctor.json").read_bytes())["url"] == server.base_url
    assert DoubtKind.HOP_BUFFERS in {doubt.kind for doubt in load_run(folder).summary.doubts}
    page = (folder / "report.html").read_text("utf-8")
    assert 'id="path"' in page
    assert "batches: one piece of" in page


@contextmanager
def _entered(make: Callable[[str], AbstractContextManager[str]]) -> Iterator[Callable[[str], str]]:
    """A hop that is left when the test is over."""
    with ExitStack() as stack:
        yield lambda upstream: stack.enter_context(make(upstream))
