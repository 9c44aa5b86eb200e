"""``withstand run`` as a user has it: real processes, a real server, every kind of bad input."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from outcomes import code
from restarting import Restarting, restarting
from withstand.record import Status
from withstand.runs import RunFolder
from withstand.testing import Schedule, TruthServer
from withstand.testing.certs import make_certificates

__all__ = ["restarting"]

QUICK = Schedule(ttft_ms=10, itl_ms=2, tokens=5)
SMALL = ("--num-prompts", "12", "--set", "workload.options.input_len=8", "--set", "workload.options.output_len=5")
RUN = (sys.executable, "-m", "withstand", "run")


def withstand(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [*RUN, *arguments]
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=60, check=False
    )


def summary(folder: Path) -> dict[str, object]:
    return json.loads((folder / "summary.json").read_text())


def test_several_loads_are_stages_and_the_folder_has_everything(tmp_path: Path) -> None:
    with TruthServer(QUICK) as server:
        done = withstand(
            "--base-url", server.base_url, "--request-rate", "40,80", *SMALL, "--output-dir", "r", cwd=tmp_path
        )
    assert code(done, tmp_path) == 0, done.stderr
    assert done.stdout.count("Serving Benchmark Result") == 2
    assert "Mean TTFT (ms):" in done.stdout
    stages = summary(tmp_path / "r")["stages"]
    assert [(s["name"], s["completed"], s["failed"], s["request_rate"]) for s in stages] == [
        ("rate-40", 12, 0, 40.0),
        ("rate-80", 12, 0, 80.0),
    ]
    assert sorted(p.name for p in (tmp_path / "r").iterdir()) == [
        "records.jsonl.gz",
        "report.html",
        "run.json",
        "samples.jsonl.gz",
        "summary.json",
    ]
    assert len(list(RunFolder.open(tmp_path / "r").records())) == 25


def test_records_that_were_removed_are_missed(tmp_path: Path) -> None:
    with TruthServer(QUICK) as server:
        withstand("--base-url", server.base_url, *SMALL, "--output-dir", "r", cwd=tmp_path)
    (tmp_path / "r" / "records.jsonl.gz").unlink()
    command = [sys.executable, "-m", "withstand", "report", str(tmp_path / "r")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "records of stage-1 are gone" in done.stderr


def bodies_of(tmp_path: Path, name: str, *options: str) -> list[dict[str, object]]:
    """What a run asks for, in any order."""
    with TruthServer(QUICK, keep_bodies=True) as server:
        arguments = ("--base-url", server.base_url, "--request-rate", "50", *SMALL, *options, "--output-dir", name)
        done = withstand(*arguments, cwd=tmp_path)
        assert code(done, tmp_path / name) == 0, done.stderr
        return sorted((s.body for s in server.truth() if s.body), key=json.dumps)


@pytest.mark.parametrize("option", [("--seed", "3"), ("--same-prompts",), ("--set", "salt=mine")])
def test_the_same_seed_and_salt_send_the_same_bytes(tmp_path: Path, option: tuple[str, ...]) -> None:
    a, b = (bodies_of(tmp_path, name, *option) for name in ("a", "b"))
    assert a == b
    assert len(a) == 13


def test_without_a_seed_no_prompt_is_one_of_another_run_and_the_work_is_the_same(tmp_path: Path) -> None:
    a, b = (bodies_of(tmp_path, name) for name in ("a", "b"))
    assert not {json.dumps(body) for body in a} & {json.dumps(body) for body in b}
    one, other = (records_of(tmp_path / name) for name in ("a", "b"))
    assert one == other
    salts = {json.loads((tmp_path / name / "run.json").read_text())["plan"]["salt"] for name in ("a", "b")}
    assert len(salts) == 2
    compared = [sys.executable, "-m", "withstand", "compare", str(tmp_path / "a"), str(tmp_path / "b")]
    done = subprocess.run(compared, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def records_of(folder: Path) -> list[tuple[object, ...]]:
    """How much was asked, and after how long."""
    found = sorted(RunFolder.open(folder).records(1), key=lambda r: r.id)
    first_ns = found[0].scheduled_ns or 0
    return [(r.id, r.prompt_tokens, r.requested_output_tokens, (r.scheduled_ns or 0) - first_ns) for r in found]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("--dataset-name", "nope"), 2, "--dataset-name: 'nope' is unknown; choose one of"),
        (("--dataset-name", "sharegpt", "--dataset-path", "none.json"), 2, "none.json cannot be read: No such file"),
        (("--dataset-name", "sharegpt", "--dataset-path", "empty.json"), 2, "empty.json is empty"),
        (("--request-rate", "0"), 2, "--request-rate"),
        (("--request-rate", "-3"), 2, "--request-rate"),
        (("--max-concurrency", "0"), 2, "--max-concurrency"),
        (("--set", "targt.model=x"), 2, "`targt`"),
        (
            ("--doctor", "--set", "workload.options.inputs=5"),
            2,
            "no option inputs (did you mean input_len?)",
        ),  # before the path is examined
        (("bad.toml",), 2, "unknown field `speed` (there are: name, phase, "),
        (("none.toml",), 2, "none.toml"),
        (("--base-url", "localhost:8000"), 2, "--base-url"),
        (("--base-url", "http://[::1"), 2, "--base-url"),
        (("--base-url", "http://127.0.0.1:0"), 2, "--base-url"),
        (("--base-url", "http://a b/"), 2, "--base-url"),
        (("--base-url", "http://127.0.0.1:9/v1/chat/completions"), 2, "leave out what follows /v1"),
        (("--endpoint", "/a\r\nX: y"), 2, "--endpoint"),
        (("--endpoint", "chat"), 2, "--endpoint"),
        (("--set", "target.headers.X: y=z"), 2, "target.headers"),
        (("--dataset-name", "sharegpt", "--dataset-path", "/dev/zero"), 2, "no regular file"),
        (("--set", "target.api_key_env=NO_SUCH"), 2, "withstand: There is no API key: the variable NO_SUCH is not set"),
        (("--set", "target.api_key_file=empty.json"), 2, "withstand: There is no API key: empty.json is empty. Name"),
        (("--api-key-file", "none.key"), 2, "withstand: There is no API key: none.key cannot be read: No such file"),
        (("--cacert", "none.pem", "--base-url", "https://127.0.0.1:9"), 2, "--cacert"),
    ],
)
def test_bad_usage_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], code: int, sentence: str) -> None:
    (tmp_path / "empty.json").touch()
    (tmp_path / "bad.toml").write_text("[[stages]]\nspeed = 3\n")
    with TruthServer(QUICK) as server:
        base = () if "--base-url" in arguments else ("--base-url", server.base_url)
        done = withstand(*base, *arguments, cwd=tmp_path)
        requests = [s for s in server.truth() if s.path.endswith("completions")]
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not requests
    assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").iterdir())


@pytest.mark.parametrize(
    ("server_options", "arguments", "sentence"),
    [
        ({"models": ("truth",)}, ("--model", "other"), "does not know the model 'other'"),
        ({"api_key": "right"}, (), "wants a key, and none was sent"),
        ({"api_key": "right"}, ("--header", "Authorization: Bearer wrong"), "refuses the key"),
        ({"behaviour": "html_error"}, (), "web page"),
        ({"behaviour": "html_200"}, (), "web page"),
        ({"behaviour": "non_json"}, (), "not what --backend expects"),
        ({"behaviour": "http_500"}, (), "HTTP 500"),
        ({"behaviour": "no_stream"}, (), "target.stream=false"),
        ({"behaviour": "error_before_token"}, (), "nothing was measured"),
        ({"behaviour": "redirect"}, (), "redirected"),
        ({"behaviour": "empty_200"}, (), "not a single token"),
        ({"behaviour": "hang"}, ("--set", "target.timeouts.read_s=0.5"), "No byte for 0.5 s"),
    ],
)
def test_an_endpoint_that_cannot_be_measured(
    tmp_path: Path, server_options: dict[str, object], arguments: tuple[str, ...], sentence: str
) -> None:
    with TruthServer(QUICK, **server_options) as server:
        done = withstand("--base-url", server.base_url, *SMALL, *arguments, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()[-1]) < 500


def test_nobody_listens(tmp_path: Path) -> None:
    done = withstand("--base-url", "http://127.0.0.1:9", cwd=tmp_path)
    assert done.returncode == 3
    assert "No connection to 127.0.0.1:9: connection refused" in done.stderr


def test_a_certificate_that_is_not_trusted(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    with TruthServer(QUICK, tls=certificates.server) as server:
        stranger = withstand("--base-url", server.base_url, *SMALL, cwd=tmp_path)
        trusted = withstand("--base-url", server.base_url, "--cacert", "ca.pem", *SMALL, cwd=tmp_path)
        careless = withstand("--base-url", server.base_url, "--insecure", *SMALL, cwd=tmp_path)
    assert (stranger.returncode, code(trusted, tmp_path), code(careless, tmp_path)) == (3, 0, 0), trusted.stderr
    assert "--cacert" in stranger.stderr


def test_a_key_is_sent_and_never_stored(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret-from-file\n")
    for name, options, env in (
        ("file", ("--api-key-file", "key"), {}),
        ("env", ("--api-key-env", "MY_KEY"), {"MY_KEY": "s3cret-from-file"}),
    ):
        with TruthServer(QUICK, api_key="s3cret-from-file") as server:
            done = withstand(
                "--base-url", server.base_url, *options, *SMALL, "--output-dir", name, cwd=tmp_path, env=env
            )
        assert code(done, tmp_path) == 0, done.stderr
        assert "s3cret" not in done.stdout + done.stderr
        for path in (tmp_path / name).iterdir():
            assert b"s3cret" not in path.read_bytes(), path


def test_a_limiter_is_counted_as_a_limiter(tmp_path: Path) -> None:
    with TruthServer(QUICK, behaviour="limited") as server:
        done = withstand("--base-url", server.base_url, *SMALL, "--output-dir", "r", cwd=tmp_path)
    assert done.returncode == 3
    (stage,) = summary(tmp_path / "r")["stages"]
    assert stage["statuses"] == {"limited": 12}
    assert "limiter" in done.stdout


def test_a_missed_slo_is_exit_code_1(tmp_path: Path) -> None:
    with TruthServer(QUICK) as server:
        good = withstand("--base-url", server.base_url, *SMALL, "--goodput", "ttft:5000", cwd=tmp_path)
        missed = withstand("--base-url", server.base_url, *SMALL, "--goodput", "ttft:1", cwd=tmp_path)
    assert (code(good, tmp_path), code(missed, tmp_path, otherwise=1)) == (0, 1)
    if missed.returncode == 1:
        assert "SLO was missed: fewer than 99 % of the requests were good at stage-1 (0 %)" in missed.stderr


def test_failures_are_measured_and_doubted(tmp_path: Path) -> None:
    with TruthServer(QUICK, behaviour={"plain": 0.95, "http_500": 0.05}, seed=1) as server:
        done = withstand(
            "--base-url",
            server.base_url,
            *SMALL,
            "--num-prompts",
            "49",
            "--num-warmups",
            "1",
            "--output-dir",
            "r",
            cwd=tmp_path,
        )
    assert code(done, tmp_path) == 0, done.stderr
    (stage,) = summary(tmp_path / "r")["stages"]
    assert stage["completed"] + stage["failed"] == 49
    assert stage["failed"] in {2, 3}
    assert "requests_failed" in {d["kind"] for d in stage["doubts"]}


SLOW = Schedule(ttft_ms=20, itl_ms=10, tokens=20)
LONG = ("--request-rate", "30", "--num-prompts", "600", *SMALL[2:], "--set", "workload.options.output_len=20")


def started(server: TruthServer, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """A run whose measured stage is well under way."""
    command = [*RUN, "--base-url", server.base_url, *arguments, "--output-dir", str(folder)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until = time.monotonic() + 30
    part = folder / "records.w0.jsonl"
    while not part.exists() or part.read_bytes().count(b"\n") < 12:
        assert time.monotonic() < until
        time.sleep(0.05)
    return process


def test_kill_minus_nine_leaves_a_readable_folder_and_no_worker(tmp_path: Path) -> None:
    with TruthServer(SLOW) as server:
        process = started(server, tmp_path / "r", *LONG)
        process.kill()
        process.communicate()
        time.sleep(1.0)
        served = [s for s in server.truth() if s.done_ns is not None and s.aborted_ns is None and s.tokens]
    records = list(RunFolder.open(tmp_path / "r").records())
    assert len([r for r in records if r.status is Status.OK]) >= min(len(served), 11)
    assert not _workers(process.pid)
    report = subprocess.run(
        [sys.executable, "-m", "withstand", "report", str(tmp_path / "r")], capture_output=True, text=True, check=False
    )
    assert report.returncode == 0, report.stderr
    assert "Partial" in report.stderr + report.stdout
    assert "Successful requests:" in report.stdout


def test_ctrl_c_drains_writes_and_reports_and_resume_goes_on(tmp_path: Path) -> None:
    with TruthServer(SLOW) as server:
        process = started(server, tmp_path / "r", "--request-rate", "30,60", *LONG[2:])
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 3, err
        assert "Successful requests:" in out
        assert "--resume" in err
        statuses = {r.status for r in RunFolder.open(tmp_path / "r").records()}
        assert Status.OK in statuses
        assert statuses <= {Status.OK, Status.NOT_SENT}, "what is due at that very moment is not sent"
        assert [e.state.value for e in RunFolder.open(tmp_path / "r").manifest.stages] == [
            "done",
            "interrupted",
            "planned",
        ]
        plan = tmp_path / "r" / "run.json"
        plan.write_text(plan.read_text().replace('"num_prompts": 600', '"num_prompts": 15'))
        again = withstand("--resume", str(tmp_path / "r"), cwd=tmp_path)
    assert code(again, tmp_path) == 0, again.stderr
    assert [(s["name"], s["completed"]) for s in summary(tmp_path / "r")["stages"]] == [
        ("rate-30", 15),
        ("rate-60", 15),
    ]


def test_a_second_ctrl_c_stops_at_once_and_loses_nothing(tmp_path: Path) -> None:
    with TruthServer(Schedule(ttft_ms=20, itl_ms=200, tokens=100)) as server:
        command = (
            "--request-rate",
            "30",
            "--num-prompts",
            "600",
            *SMALL[2:],
            "--set",
            "workload.options.output_len=100",
        )
        process = subprocess.Popen(
            [*RUN, "--base-url", server.base_url, *command, "--num-warmups", "0", "--output-dir", str(tmp_path / "r")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        while len(server.truth()) < 20:
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.7)
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=10)
        sent = [s for s in server.truth() if s.path.endswith("completions")]
    assert process.returncode == 3, err
    records = list(RunFolder.open(tmp_path / "r").records())
    assert len(records) == len(sent)
    assert {r.status for r in records} == {Status.CANCELLED}
    words = " ".join(out.split())
    assert f"Failed requests: 0 Requests cut by us: {len(records)} " in words
    assert words.count(f"cut by us: {len(records)} of {len(records)} requests; the server did not fail them") == 1


def signalled(number: signal.Signals, within_s: float, prompts: int, answer: Schedule, folder: Path) -> tuple[int, str]:
    """(Exit code, stderr) of a run that gets a signal when the server has all of its requests."""
    with TruthServer(answer) as server:
        load = ("--num-prompts", str(prompts), *SMALL[2:4], "--set", f"workload.options.output_len={answer.tokens}")
        command = [*RUN, "--base-url", server.base_url, *load, "--num-warmups", "0", "--output-dir", str(folder)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while len(server.truth()) < prompts:
            time.sleep(0.1)
        process.send_signal(number)
        _, err = process.communicate(timeout=within_s)
    return process.returncode, err


def test_sigterm_stops_at_once_and_what_was_cut_is_not_said_to_be_complete(tmp_path: Path) -> None:
    exit_code, err = signalled(signal.SIGTERM, 10, 20, Schedule(ttft_ms=20, itl_ms=200, tokens=100), tmp_path / "r")
    assert exit_code == 3
    assert "0 of 1 stage complete. `--resume` goes on with it." in err
    assert [entry.state.value for entry in RunFolder.open(tmp_path / "r").manifest.stages] == ["interrupted"]


def test_a_stage_that_came_to_its_end_after_ctrl_c_is_counted_as_every_other(tmp_path: Path) -> None:
    """It is not run again, so that nobody would count it later."""
    signalled(signal.SIGINT, 30, 3, Schedule(ttft_ms=20, itl_ms=300, tokens=10), tmp_path / "r")
    folder = RunFolder.open(tmp_path / "r")
    assert [entry.state.value for entry in folder.manifest.stages] == ["done"]
    assert [record.text_tokens for record in folder.records()] == [10] * 3


def test_the_first_ctrl_c_says_at_once_what_is_waited_for(tmp_path: Path) -> None:
    _, err = signalled(signal.SIGINT, 30, 3, Schedule(ttft_ms=20, itl_ms=300, tokens=10), tmp_path / "r")
    assert "Interrupted: 3 answers are waited for. Ctrl-C again stops at once." in " ".join(err.split())


def test_a_warm_ups_answers_are_not_waited_for(tmp_path: Path) -> None:
    with TruthServer(QUICK, behaviour="hang") as server:
        process = subprocess.Popen(
            [*RUN, "--base-url", server.base_url, *SMALL],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        while not server.truth():
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=10)
    assert process.returncode == 3
    assert "Interrupted" in err
    assert "first request failed" not in err


def test_a_server_that_restarts_costs_the_requests_of_that_time_and_no_more(
    restarting: Restarting, tmp_path: Path
) -> None:
    command = [*RUN, "--base-url", restarting.base_url, "--set", "target.stream=false", "--num-warmups", "1"]
    load = ("--max-concurrency", "2", "--duration", "6", *SMALL[2:])
    process = subprocess.Popen(
        [*command, *load, "--output-dir", "r"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while restarting.served < 100:
        assert process.poll() is None
        time.sleep(0.02)
    restarting.away = True
    time.sleep(2)
    restarting.away, served = False, restarting.served
    out, err = process.communicate(timeout=40)
    assert "could not go on" not in out + err
    (stage,) = summary(tmp_path / "r")["stages"]
    assert stage["failed"] == stage["statuses"]["http_error"] > 0
    assert not stage["stopped_early"]
    assert restarting.served > served
    assert stage["duration"] == pytest.approx(6, abs=1)


def _workers(session: int) -> list[str]:
    """Processes of workers that were started by that process's run."""
    done = subprocess.run(["ps", "-wweo", "ppid=,args="], capture_output=True, text=True, check=True)
    return [
        line for line in done.stdout.splitlines() if "withstand.load.worker" in line and line.split()[0] == str(session)
    ]


def test_a_full_disk_is_said_and_what_was_measured_is_kept(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk."""
    with TruthServer(QUICK) as server:
        command = [*RUN, "--base-url", server.base_url, "--request-rate", "100", "--num-prompts", "200", *SMALL[2:4]]
        command += ["--set", "workload.options.output_len=40"]
        done = subprocess.run(
            ["bash", "-c", 'ulimit -f 64; exec "$@"', "x", *command, "--output-dir", str(tmp_path / "r")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 3, done.stderr
    told = f"Records cannot be written to {tmp_path / 'r'}: File too large. What was finished before is kept there;"
    first, last = [line for line in done.stderr.splitlines() if "cannot be written" in line]
    assert first.startswith(told)
    assert last.startswith(f"withstand: Partial: the run could not go on ({told}")
    assert "Traceback" not in done.stderr
    assert f"`withstand report {tmp_path / 'r'}` tells it again." in done.stdout
    records = [r for r in RunFolder.open(tmp_path / "r").records() if r.status is Status.OK]
    assert len(records) > 20


def test_descriptors_below_the_load_are_said_before_anything_is_sent(tmp_path: Path) -> None:
    with TruthServer(QUICK) as server:
        command = [*RUN, "--base-url", server.base_url, "--max-concurrency", "500", "--num-prompts", "600", *SMALL[2:]]
        done = subprocess.run(
            ["bash", "-c", 'ulimit -n 256; exec "$@"', "x", *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        requests = [s for s in server.truth() if s.path.endswith("completions")]
    assert done.returncode == 3
    assert "open files" in done.stderr
    assert not requests


def test_a_soft_limit_is_raised(tmp_path: Path) -> None:
    with TruthServer(QUICK) as server:
        command = [*RUN, "--base-url", server.base_url, "--max-concurrency", "150", "--num-prompts", "300", *SMALL[2:]]
        done = subprocess.run(
            ["bash", "-c", 'ulimit -Sn 64; exec "$@"', "x", *command, "--output-dir", "r"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert code(done, tmp_path) == 0, done.stderr
    assert summary(tmp_path / "r")["stages"][0]["completed"] == 300


def test_conversations_and_traces_run(tmp_path: Path) -> None:
    rows = [{"timestamp": i * 20, "input_length": 30, "output_length": 4, "hash_ids": [0]} for i in range(10)]
    (tmp_path / "trace.jsonl").write_text("\n".join(map(json.dumps, rows)))
    trace = ("--dataset-name", "mooncake-trace", "--dataset-path", "trace.jsonl", "--num-prompts", "10")
    talk = (
        "--dataset-name",
        "conversations",
        "--max-concurrency",
        "2",
        "--num-prompts",
        "4",
        "--set",
        "workload.options.first_len=9",
    )
    with TruthServer(QUICK) as server:
        base = ("--base-url", server.base_url)
        traced = withstand(
            *base, *trace, "--set", 'stages=[{"arrivals":{"kind":"trace"}}]', "--output-dir", "t", cwd=tmp_path
        )
        talked = withstand(*base, *talk, "--set", "workload.options.output_len=3", "--output-dir", "c", cwd=tmp_path)
    assert (code(traced, tmp_path), code(talked, tmp_path)) == (0, 0), traced.stderr + talked.stderr
    assert summary(tmp_path / "t")["stages"][0]["completed"] == 10
    assert summary(tmp_path / "c")["stages"][0]["completed"] == 16


def test_where_the_server_does_not_count_the_engines_tokenizer_does(tmp_path: Path) -> None:
    early = Schedule(ttft_ms=10, itl_ms=2, tokens=5, stop_after=3)
    with TruthServer(early, behaviour="no_usage+tokens_per_event:3") as server:
        free = ("--set", "workload.ignore_eos=false")
        done = withstand("--base-url", server.base_url, *SMALL, *free, "--output-dir", "r", cwd=tmp_path)
    assert "Traceback" not in done.stderr
    (stage,) = summary(tmp_path / "r")["stages"]
    assert (stage["total_output_tokens"], stage["tokens_from"]) == (36, {"tokenizer": 12})
    assert stage["ledger"]["text_by"] == "the engine's /tokenize"
    columns = [stage["ledger"][name] for name in ("server", "text", "events", "requested")]
    assert [column and column["tokens"] for column in columns] == [None, 36, 12, 60]
    records = [r for r in RunFolder.open(tmp_path / "r").records() if r.stage == 1]
    assert {(r.output_tokens, r.text_tokens, r.requested_output_tokens) for r in records} == {(3, 3, 5)}
    assert not (tmp_path / "r" / ".work").exists()


def test_without_usage_and_tokenizer_the_events_are_named_as_an_estimate(tmp_path: Path) -> None:
    with TruthServer(QUICK, behaviour="no_usage") as server:
        done = withstand(
            "--base-url", server.base_url, "--tokenizer", "estimate", *SMALL, "--output-dir", "r", cwd=tmp_path
        )
    assert "12 by events" in done.stdout.replace("\n", " ")
    assert "tokens by" in done.stdout
    (stage,) = summary(tmp_path / "r")["stages"]
    assert (stage["tokens_from"], stage["ledger"]["text"]) == ({"chunks": 12}, None)
