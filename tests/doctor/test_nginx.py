"""nginx's configuration judged: each known mistake is named with its line, and what is sound is left alone."""

import os
from pathlib import Path

import pytest

from withstand.app.doctor import nginx
from withstand.app.doctor.nginx import exit_code_of as code_of
from withstand.app.doctor.nginx import lint_nginx
from withstand.cli.entry import exit_code_of
from withstand.doctor.finding import Verdict
from withstand.errors import UsageError
from withstand.spec.stack import Edge
from withstand.stack.nginx import Behind, nginx_conf

SOUND = """
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    proxy_read_timeout 1h 30m; client_max_body_size 64m; proxy_pass http://gw;
"""


def conf(here: str = "", server: str = "", http: str = "", upstream: str = "keepalive 64;") -> str:
    return f"""
    events {{ }}  # a comment {{
    http {{
        log_format x '{{"a": "$status"}}';
        {http}
        upstream gw {{ server 127.0.0.1:1; {upstream} }}
        server {{ {server}
            location ~ ^/v1/.*$ {{ {SOUND} {here} }}
        }}
    }}
    """


def found(tmp_path: Path, text: str) -> dict[str, Verdict]:
    path = tmp_path / "site.conf"
    path.write_text(text, "utf-8")
    findings = lint_nginx(path)
    assert all(finding.cure or finding.verdict is Verdict.OK for finding in findings)
    return {finding.check.removeprefix("nginx."): finding.verdict for finding in findings}


def test_what_is_sound_is_left_alone(tmp_path: Path) -> None:
    assert found(tmp_path, conf()) == {"pass": Verdict.OK}


@pytest.mark.parametrize("balance", ["least_conn", "hash", "round_robin"])
def test_our_own_configuration_is_sound(balance: str, tmp_path: Path) -> None:
    told = Edge(balance=balance, gateways=("http://b:1",))  # type: ignore[arg-type]
    text = nginx_conf(told, Behind(("http://a:1",)), (1, 2), root=True, cores=2)
    assert set(found(tmp_path, text).values()) == {Verdict.OK}


@pytest.mark.parametrize(
    ("mistake", "check", "verdict"),
    [
        ({"here": "proxy_buffering on;"}, "buffering", Verdict.DOUBT),
        ({"here": "proxy_http_version 1.0;"}, "http-version", Verdict.WRONG),
        ({"here": "proxy_http_version 1.0; proxy_buffering on;"}, "buffering", Verdict.WRONG),
        ({"here": "proxy_read_timeout 60;"}, "read-timeout", Verdict.WRONG),
        ({"here": "proxy_read_timeout 5m;"}, "read-timeout", Verdict.DOUBT),
        ({"server": "proxy_next_upstream error non_idempotent;"}, "retry", Verdict.WRONG),
        ({"http": "proxy_ignore_client_abort on;"}, "abort", Verdict.WRONG),
        ({"here": "client_max_body_size 1m;"}, "body-size", Verdict.WRONG),
        ({"here": "client_max_body_size 4096k;"}, "body-size", Verdict.DOUBT),
        ({"http": "gzip on; gzip_types text/css text/event-stream;"}, "gzip", Verdict.WRONG),
        ({"server": "chunked_transfer_encoding off;"}, "chunked", Verdict.WRONG),
        ({"server": "proxy_cache zone; proxy_cache_methods POST;"}, "cache", Verdict.WRONG),
        ({"server": "proxy_cache zone;"}, "cache", Verdict.DOUBT),
        ({"server": "limit_rate 10k;"}, "rate", Verdict.DOUBT),
        ({"server": "proxy_intercept_errors on;"}, "errors", Verdict.DOUBT),
        ({"upstream": ""}, "keepalive", Verdict.DOUBT),
    ],
)
def test_each_mistake_is_named(mistake: dict[str, str], check: str, verdict: Verdict, tmp_path: Path) -> None:
    assert found(tmp_path, conf(**mistake))[check] is verdict


def test_what_nginx_does_by_itself_is_mistaken_for_streams(tmp_path: Path) -> None:
    told = found(tmp_path, "http { server { location / { proxy_pass http://127.0.0.1:8000; } } }")
    wrong = {name for name, verdict in told.items() if verdict is Verdict.WRONG}
    assert wrong == {"buffering", "http-version", "read-timeout", "body-size"}


def test_all_cures_at_once_leave_nothing_to_cure(tmp_path: Path) -> None:
    path = tmp_path / "site.conf"
    path.write_text("http { server { location / { proxy_pass http://127.0.0.1:8000; } } }")
    cures = [finding.cure for finding in lint_nginx(path)]
    here = " ".join(f"{cure.partition(';')[0]};" for cure in cures if not cure.startswith("upstream"))
    assert any("proxy_pass http://NAME" in cure for cure in cures)
    around = "upstream NAME { server 127.0.0.1:8000; keepalive 64; }"
    path.write_text(f"http {{ {around} server {{ location / {{ {here} proxy_pass http://NAME; }} }} }}")
    assert [finding.verdict for finding in lint_nginx(path)] == [Verdict.OK]


def test_the_verb_sums_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "site.conf"
    path.write_text(conf("limit_rate 1k; client_max_body_size 1m;"))
    assert exit_code_of(["doctor", "--nginx", str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 ok, 1 in doubt, 1 wrong, 0 not tried"


def test_headers_of_a_block_replace_all_of_those_around_it(tmp_path: Path) -> None:
    text = conf().replace('proxy_set_header Connection "";', "proxy_set_header Host $host;")
    assert found(tmp_path, text)["keepalive"] is Verdict.WRONG
    around = text.replace("server {", 'server { proxy_set_header Connection "";')
    assert found(tmp_path, around)["keepalive"] is Verdict.WRONG


def test_included_files_are_read_and_lines_are_told(tmp_path: Path) -> None:
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites" / "a.conf").write_text(f"upstream gw {{ keepalive 4; }}\nserver {{ location / {{ {SOUND} }} }}")
    flat = SOUND.replace("\n", " ")
    (tmp_path / "sites" / "b.conf").write_text(
        f"server {{\n  location /b {{\n    {flat}\n    limit_rate 1k;\n  }}\n}}\n"
    )
    path = tmp_path / "nginx.conf"
    path.write_text("events {}\nhttp { include sites/*.conf; include none*.conf; }\n")
    findings = lint_nginx(path)
    assert [finding.verdict for finding in findings] == [Verdict.OK, Verdict.DOUBT]
    assert "b.conf:4" in findings[1].said
    assert code_of(findings) == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("http {\n server {\n", "bad.conf:2: the block of server does not end"),
        ("http { }\n}\n", "bad.conf:2: a } that closes nothing"),
        ("a b\n", "bad.conf:1: a directive without its end"),
        ("a 'b;\n", "bad.conf:1: a quote that does not end"),
        ("include bad.conf;", "included by what it includes"),
        ("include gone.conf;", "cannot be read"),
    ],
)
def test_what_is_no_configuration_is_said(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.conf"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        lint_nginx(path)


def test_lua_is_passed_over(tmp_path: Path) -> None:
    lua = 'access_by_lua_block { if x then y = {1, "}"} end }'
    assert found(tmp_path, conf(here=lua)) == {"pass": Verdict.OK}


def test_a_file_that_passes_nothing_on_is_not_judged(tmp_path: Path) -> None:
    assert found(tmp_path, "events {}") == {"pass": Verdict.NOT_TRIED}


LUA = """content_by_lua_block {
    -- don't end here }
    --[[ nor here } ]] local s = "}" .. '}' .. [==[ } ]==]
    if s then ngx.say({ a = "\\"}" }) end
}"""


def test_braces_and_quotes_in_luas_comments_and_strings_are_none(tmp_path: Path) -> None:
    assert found(tmp_path, conf(server=f"location /l {{ {LUA} }} location /m {{ {LUA} }}")) == {"pass": Verdict.OK}


def test_what_is_not_http_is_not_judged_as_it(tmp_path: Path) -> None:
    stream = "stream { upstream b { server 127.0.0.1:2; } server { listen 1; proxy_pass b; } }"
    assert found(tmp_path, conf() + stream) == {"pass": Verdict.OK}


def test_blocks_without_end_and_files_without_end_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="blocks in one another"):
        found(tmp_path, "a {" * 3000 + "}" * 3000)
    with pytest.raises(UsageError, match="has more than"):
        lint_nginx(Path("/dev/zero"))


def test_files_that_include_one_another_over_and_over_are_refused(tmp_path: Path) -> None:
    """Each includes all after it: no loop, and 2^39 files."""
    for i in range(40):
        (tmp_path / f"{i}.conf").write_text("".join(f"include {j}.conf;" for j in range(i + 1, 40)))
    with pytest.raises(UsageError, match=r"0\.conf includes more than 2,000 files; is it one\?"):
        lint_nginx(tmp_path / "0.conf")


def test_a_pipe_is_read_and_one_that_nobody_writes_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nginx, "_SILENT_S", 0.2)
    os.mkfifo(tmp_path / "silent")
    with pytest.raises(UsageError, match=r"silent says nothing for 0\.2 s; name a file"):
        lint_nginx(tmp_path / "silent")
    there, here = os.pipe()
    os.write(here, conf().encode())
    os.close(here)
    with os.fdopen(there):
        assert [finding.verdict for finding in lint_nginx(Path(f"/dev/fd/{there}"))] == [Verdict.OK]


def test_what_is_alike_is_said_once_and_names_the_first_places(tmp_path: Path) -> None:
    sound = SOUND.replace("\n", " ")
    places = "".join(f"location /{i} {{ {sound} limit_rate 1k; }}\n" for i in range(2000))
    path = tmp_path / "many.conf"
    path.write_text(f"http {{\nupstream gw {{ keepalive 4; }}\nserver {{\n{places}location /last {{ {sound} }}\n}}\n}}")
    slowed, fine = lint_nginx(path)
    assert slowed.facts == {"places": 2000}
    assert slowed.said.startswith("location /0 (many.conf:4) slows answers down; so in location /1 (many.conf:5), ")
    assert slowed.said.endswith("location /3 (many.conf:7), 1,996 more")
    assert (fine.verdict, fine.facts) == (Verdict.OK, {"places": 1})
