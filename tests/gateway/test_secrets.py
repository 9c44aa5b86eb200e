"""What nobody may get at, or slip in: keys, engines' credentials, the state's password."""

import hashlib
import random
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from engines import Behave, Engine, answering, hanging_up
from gateways import Gateway, body, get, model
from money import bearer, key, spends
from withstand.errors import SpecError, UsageError
from withstand.gateway.config import config_from_file, config_of
from withstand.gateway.keys import Keyring
from withstand.gateway.roster import Roster
from withstand.gateway.waiting import Lobby

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]

SECRETS = ("sk-engine-secret", "sk-alice", "sk-root", "sk-guessed", "state-secret")


def with_engine_key(url: str, name: str = "m") -> str:
    return model(url, name=name).rstrip() + '\napi_key_env = "ENGINE_KEY"\n'


@pytest.fixture
def engine_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_KEY", "sk-engine-secret")


@pytest.mark.usefixtures("engine_key")
def test_nothing_that_a_client_says_takes_the_place_of_the_engines_credentials(
    engine: Engines, gateway: Gateways
) -> None:
    one, other = engine(answering()), engine(answering())
    gw = gateway(key("alice", "sk-alice") + with_engine_key(one.url))
    fields = {"api_key": "sk-mine", "api_base": other.url, "base_url": other.url}
    fields |= {"extra_headers": {"authorization": "Bearer sk-mine"}, "organization": "x", "custom_llm_provider": "y"}
    headers = (
        "",
        "Authorization: Bearer sk-mine\r\n",
        "authorization: Basic c2s6\r\n",
        "X-Api-Key: sk-mine\r\nApi-Key: sk-mine\r\n",
        "AUTHORIZATION: Bearer sk-mine\r\nx-api-key: sk-alice\r\n",
        "Connection: authorization, x-request-id\r\n",
        f"X-Forwarded-Host: {other.name}\r\nX-Api-Base: {other.url}\r\n",
    )
    for more in headers:
        assert gw.ask(body(**fields), more=bearer("sk-alice") + more).status == 200
    assert not other.seen
    for seen in one.seen:
        assert re.findall(rb"(?im)^(?:authorization|x-api-key|api-key):.*$", seen.head) == [
            b"authorization: Bearer sk-engine-secret\r"
        ]


def test_each_way_to_show_a_key_works_and_none_falls_back(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    gw = gateway(key("alice", "sk-alice") + model(one.url))
    for more in ("Authorization: bearer sk-alice\r\n", "X-Api-Key: sk-alice\r\n", "api-key: sk-alice\r\n"):
        assert gw.ask(body(), more=more).status == 200
    for more in (
        bearer("sk-guessed") + "x-api-key: sk-alice\r\n",
        bearer("sk-guessed") + bearer("sk-alice"),
        "x-api-key: sk-guessed\r\napi-key: sk-alice\r\n",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer \r\n",
        "x-api-key: \r\n",
        "Cookie: sk-alice\r\n",
    ):
        assert gw.ask(body(), more=more).status == 401, more
        assert gw.ask(body(api_key="sk-alice"), "/v1/chat/completions?api_key=sk-alice", more).status == 401
    assert len(one.seen) == 3


@pytest.mark.usefixtures("engine_key")
def test_secrets_are_in_no_output(
    engine: Engines, gateway: Gateways, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    keys = key("alice", "sk-alice", "limits.rpm = 3") + key("root", "sk-root", "admin = true")
    gw = gateway(
        keys
        + f'[log]\npath = "{log}"\n'
        + with_engine_key(engine(spends()).url)
        + with_engine_key(engine(hanging_up()).url, "dead")
        + with_engine_key("http://127.0.0.1:1", "gone")
    )
    heard = []
    for secret in ("sk-alice", "sk-root", "sk-guessed"):
        for content in (body(), body("dead"), body("gone"), body("none"), b"not json", body(stream=True)):
            for more in (bearer(secret), f"x-api-key: {secret}\r\nx-request-id: bad id {secret}\r\n"):
                answer = gw.ask(content, more=more)
                heard.append(answer.head + answer.raw)
        for path in (
            "/v1/models",
            "/admin/engines",
            "/admin/usage",
            "/metrics",
            "/openapi.json",
            "/docs",
            "/ready",
            "/x",
        ):
            answer = gw.client().send(get(path, bearer(secret))).answer()
            heard.append(answer.head + answer.raw)
    heard += [gw.stop().encode(), log.read_bytes()]
    for secret in SECRETS:
        assert not [text for text in heard if secret.encode() in text]


@pytest.mark.usefixtures("engine_key")
def test_no_object_prints_a_secret(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(key("alice", "sk-alice") + with_engine_key("http://127.0.0.1:1"))
    config = config_from_file(tmp_path / "f")
    keyring = Keyring(config.keys, local=True)
    seats = Roster(config, random.Random(), Lobby(lambda _: None)).models["m"].seats
    assert "secret" not in repr((config, keyring, seats, seats[0].engine))
    assert seats[0].credentials == b"sk-engine-secret"


def test_a_password_may_not_stand_in_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for state in (
        "redis://:state-secret@h",
        "postgresql://u:state-secret@h/d",
        "postgresql://h/d?password=state-secret",
    ):
        with pytest.raises(SpecError, match="put the whole URL into the variable that state_env names") as caught:
            config_of({"state": state})
        assert "state-secret" not in str(caught.value)
    pytest.importorskip("redis")
    monkeypatch.setenv("STATE", "redis://:state-secret@127.0.0.1:1")
    with pytest.raises(AssertionError, match=r"state redis://127\.0\.0\.1:1 cannot be used") as failed:
        Gateway(tmp_path, 'state_env = "STATE"\n' + model("http://127.0.0.1:1"))
    assert "state-secret" not in str(failed.value)


def test_traces_pass_and_request_ids_are_checked(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    gw = gateway(model(one.url))
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    gw.ask(body(), more=f"traceparent: {trace}\r\ntracestate: a=b\r\nx-request-id: mine-1\r\n")
    gw.ask(body(), more="x-request-id: two words\r\n")
    gw.ask(body(), more=f"x-request-id: {'x' * 257}\r\n")
    first, *others = one.seen
    assert (first.header("traceparent"), first.header("tracestate")) == (trace, "a=b")
    assert first.header("x-request-id") == "mine-1"
    assert all((seen.header("x-request-id") or "").startswith("gw-") for seen in others)


def test_browsers_of_other_sites_are_told_nothing_and_there_is_no_proxy(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    gw = gateway(model(one.url))
    asks = "Origin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n"
    for path in ("/v1/chat/completions", "/admin/engines", "/v1/models"):
        options = get(path, asks).replace(b"GET", b"OPTIONS", 1)
        answer = gw.client().send(options).answer()
        assert answer.status in {404, 405}
        assert b"access-control" not in answer.head.lower()
    assert b"access-control" not in gw.ask(body(), more=asks).head.lower()
    before = len(one.seen)
    for line in (f"GET {one.url}/ HTTP/1.1", f"POST {one.url}/v1/other HTTP/1.1", f"CONNECT {one.name} HTTP/1.1"):
        answer = gw.client().send(f"{line}\r\nhost: {one.name}\r\ncontent-length: 0\r\n\r\n".encode()).answer()
        assert answer.status >= 400
    assert len(one.seen) == before


# Keys that are made and kept elsewhere.


def verb(*arguments: str, told: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "withstand.gateway", "keys", *arguments]
    return subprocess.run(command, input=told, capture_output=True, text=True, check=False)


def test_a_key_is_made_once_and_its_lines_are_toml(engine: Engines, gateway: Gateways, tmp_path: Path) -> None:
    made = verb("new", "al ice", "--model", "m", "--admin")
    match = re.search(r"(sk-[\w-]{43})\n", made.stderr)
    assert match is not None
    assert match[1] not in made.stdout
    told = tomllib.loads(made.stdout)["keys"]["al ice"]
    assert told == {"sha256": hashlib.sha256(match[1].encode()).hexdigest(), "models": ["m"], "admin": True}
    assert verb("hash", told=match[1] + "\n").stdout.strip() == told["sha256"]
    (tmp_path / "keys.toml").write_text(made.stdout)
    gw = gateway(f'keys_file = "{tmp_path / "keys.toml"}"\n' + model(engine(answering()).url))
    assert gw.ask(body(), more=bearer(match[1])).status == 200
    assert gw.ask(body()).status == 401
    assert verb("list", str(tmp_path / "gateway.toml")).stdout == "al ice: m; admin\n"
    empty = verb("hash")
    assert (empty.returncode, empty.stderr) == (2, "withstand: No key was given; type it, or pipe it in.\n")


def test_a_keys_hash_may_stand_in_the_environment(
    engine: Engines, gateway: Gateways, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = '[keys.alice]\nsha256_env = "ALICE"\n' + model(engine(answering()).url)
    with pytest.raises(AssertionError, match="environment variable ALICE holds no SHA-256 of the key of 'alice'"):
        Gateway(tmp_path, text)
    monkeypatch.setenv("ALICE", hashlib.sha256(b"sk-alice").hexdigest())
    gw = gateway(text)
    assert (gw.ask(body(), more=bearer("sk-alice")).status, gw.ask(body()).status) == (200, 401)


HASH = "5ca24005b740717ba4f3f6bc48a230700e68c2a4b11ecedb96f169f4efaf1f21"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"keys": {"a": {}}}, r"either sha256 or sha256_env.*`\$.keys.a`"),
        ({"keys": {"a": {"sha256": HASH, "sha256_env": "A"}}}, "either sha256 or sha256_env"),
        ({"keys": {"a": {"sha256": HASH}, "b": {"sha256": HASH.upper()}}}, r"key of 'a' too.*`\$.keys.b.sha256`"),
        ({"keys": {"a": {"sha256": HASH, "limits": {"rpm": 0}}}}, r"`\$.keys.a.limits.rpm`"),
        ({"keys": {"a": {"sha256": HASH, "limits": {"rps": 1}}}}, "unknown field `rps`"),
        ({"keys": {"a": {"sha256": HASH, "budget": {"usd": 1}}}}, r"without prices.*`\$.keys.a.budget`"),
        (
            {"keys": {"a": {"sha256": HASH, "budget": {"usd": 1}}}, "prices": {"m": {"input": 1}}, "models": {"m": {}}},
            'a restart would forget.*add state = "gateway.sqlite3"',
        ),
        ({"keys": {"a": {"sha256": HASH, "budget": {"usd": 1, "per": "week"}}}}, "Invalid enum value 'week'"),
        ({"prices": {"m": {"input": 1}}}, r"there is no model 'm'.*`\$.prices.m`"),
        (
            {"prices": {"small": {"input": 1}}, "models": {"a": {}, "b": {}}},
            r"there is no model 'small' \(there are: a, b\); name one of .*`\$.prices.small`",
        ),
        (
            {"keys": {"a": {"sha256": HASH, "models": ["small"]}}, "models": {"smollm2-135m-instruct": {}}},
            r"there is no model 'small' \(there are: smollm2-135m-instruct\); name one of .*`\$.keys.a.models\[0\]`",
        ),
        ({"prices": {"m": {"input": -1}}}, "Expected a number of at least 0"),
        ({"state": "mysql://h"}, r"mysql:// is not known.*`\$.state`"),
        ({"state": "a", "state_env": "B"}, "keep one"),
    ],
)
def test_wrong_terms_are_named_with_their_path(told: object, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        config_of(told)


def test_a_keys_file_holds_keys_alone(tmp_path: Path) -> None:
    config, keys = tmp_path / "gateway.toml", tmp_path / "keys.toml"
    config.write_text(f'keys_file = "{keys}"\n[keys.a]\nsha256 = "{HASH}"\n')
    with pytest.raises(UsageError, match=r"keys.toml cannot be read"):
        config_from_file(config)
    for text, words in (("x = 1", "nothing but"), (f'[keys.a]\nsha256 = "{HASH}"', "keep one"), ("[", "is no TOML")):
        keys.write_text(text)
        with pytest.raises(UsageError, match=words):
            config_from_file(config)
