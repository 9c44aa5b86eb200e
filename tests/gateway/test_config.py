"""What may be asked for, and the sentences for what may not."""

import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from withstand.errors import SpecError, UsageError
from withstand.gateway.config import Config, Limits, Timeouts, config_from_file, config_of

ENGINE = {"url": "http://a:1"}
GOOD = ["--model", "m", "--engine", "http://a"]
PREFILL, DECODE = {"url": "http://p:1", "role": "prefill"}, {"url": "http://d:1", "role": "decode"}
VLLM, SGLANG = {"style": "vllm_nixl"}, {"style": "sglang"}


def models(**fields: object) -> dict[str, object]:
    return {"models": {"m": {"engines": [ENGINE], **fields}}}


def test_a_route_has_the_common_timeouts_but_for_its_own() -> None:
    told = config_of({"timeouts": {"idle_s": 9}, "routes": {"/tokenize": {"timeouts": {"total_s": 1}}}})
    assert told.timeouts_of("/tokenize").total_s == 1
    assert told.timeouts_of("/tokenize").idle_s == 9
    assert told.timeouts_of("/v1/responses").total_s == 3600


@pytest.mark.parametrize(
    ("tree", "path", "cure"),
    [
        ({"modles": {}}, "modles", "unknown field"),
        (models(policy="fastest"), "$.models.m.policy", "Invalid enum value"),
        (models(engines=[{"url": "a:1"}]), "$.models.m.engines[0].url", "http://HOST:PORT"),
        (models(engines=[{"url": "http://a/v1"}]), "$.models.m.engines[0].url", "leave it out"),
        (models(engines=[{"url": "http://k@a"}]), "$.models.m.engines[0].url", "api_key_env"),
        (models(engines=[{"url": "http://a:99999"}]), "$.models.m.engines[0].url", "no URL"),
        (models(engines=[ENGINE, ENGINE]), "$.models.m.engines[1].url", "weight"),
        (models(engines=[{**ENGINE, "weight": -1}]), "weight", "at least 0"),
        (models(engines=[{**ENGINE, "api_key_env": "A", "api_key_file": "b"}]), "$.models.m.engines[0]", "keep one"),
        (models(aliases=["m"]), "$.models.m.aliases[0]", "give each model its own"),
        ({"routes": {"/v1/chat": {}}}, "$.routes./v1/chat", "/v1/chat/completions"),
        ({"timeouts": {"idle_s": 0}}, "$.timeouts.idle_s", "above 0"),
        ({"keys": {"a": {"sha256": "sk-1"}}}, "$.keys.a.sha256", "keys hash"),
        ({"keys": {"a": {"sha256": "0" * 64, "models": ["n"]}}}, "$.keys.a.models[0]", "$.models"),
        ({"listen": "0.0.0.0:80"}, "$.listen", "open = true"),
        (models(engines=[{**ENGINE, "role": "decode"}]), "$.models.m.engines[0]", "add it, or take them out"),
        (models(disaggregation={"style": "vllm"}), "$.models.m.disaggregation.style", "Invalid enum value"),
        (models(disaggregation=VLLM), "$.models.m.engines[0]", "give the engine a role"),
        (models(disaggregation=VLLM, engines=[PREFILL]), "$.models.m.engines", "both roles"),
        (models(disaggregation=VLLM, engines=[{**PREFILL, "bootstrap_port": 1}]), "engines[0]", "take it out"),
        (models(disaggregation=SGLANG, engines=[{**DECODE, "bootstrap_port": 1}]), "engines[0]", "take it out"),
        ({"workers": 2, **models(engines=[{**ENGINE, "command": ["vllm"]}])}, "engines[0].command", "say workers = 1"),
        (models(health={"every_s": 0}), "$.models.m.health.every_s", "at least 0.05"),
        (models(engines=[{**ENGINE, "health": {"path": "health"}}]), "engines[0].health.path", "begins with /"),
        ({"cors": {"origins": ["*", "chat.example.com"]}}, "$.cors.origins[1]", "https://chat.example.com"),
        ({"cors": {"origins": ["https://chat.example.com/"]}}, "$.cors.origins[0]", "without a path"),
        (models(disaggregation={**SGLANG, "fallback": True}, engines=[PREFILL, DECODE]), "disaggregation", "prefill;"),
        (models(poll={"path": "metrics"}), "$.models.m.poll.path", "begins with /"),
        (models(engines=[{**ENGINE, "ready": "health"}]), "$.models.m.engines[0].ready", "begins with /"),
        ({"telemetry": {"otlp": "localhost:4318"}}, "$.telemetry.otlp", "begins with http:// or https://"),
        (
            {"models": {"a": {}, "q.2": {"engines": [ENGINE, {**ENGINE, "env": {"A": "1", "B": 0}}]}}},
            "$.models.q.2.engines[1].env.B",
            "a text, and not a whole number; put it in quotes",
        ),
        (models(policy=5), "$.models.m.policy", "(there are: least_inflight, prefix, random, round_robin, session)"),
        (models(disaggregation={"style": 5}), "$.models.m.disaggregation.style", "(there are: sglang, vllm_nixl)"),
        (models(engines=[{**ENGINE, "role": True}]), "$.models.m.engines[0].role", "(there are: decode, prefill)"),
        (models(load_bound="x"), "$.models.m.load_bound", "Expected a number, and not a text"),
        (
            {"keys": {"a": {"sha256": "0" * 64, "budget": {"eur": 50, "per": "month"}}}},
            "$.keys.a.budget",
            "unknown field `eur` (there are: usd, per)",
        ),
        ({"keys": {"a": {"budget": {"usd": 5, "usdd": 5}}}}, "$.keys.a.budget", "(there are: usd, per)"),
        ({"log": {}}, "$.log", "missing required field `path`"),
        ({"log": {"path": ""}}, "$.log.path", "a text that is not empty"),
        ({"drain_s": float("inf")}, "$.drain_s", "give one that ends"),
        ({"prices": {"m": {"input": float("nan")}}}, "$.prices.m.input", "give one that ends"),
        ({"models": {"": {}}}, "$.models.", "give it one"),
        (models(aliases=[""]), "$.models.m.aliases[0]", "give it one"),
        (models(engines=[{**ENGINE, "api_key_file": "a\0"}]), "$.models.m.engines[0].api_key_file", "leave that out"),
        ({"limits": {"buffer_bytes": 1 << 31}}, "$.limits.buffer_bytes", "of at most 1073741824"),
        ({"prices": {"m": {"input": 1e308}}}, "$.prices.m.input", "of at most 1000000000"),
        ({"telemetry": {"otlp": "http://127.0.0.1:99999"}}, "$.telemetry.otlp", "is no URL: Port out of range"),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_a_cure(tree: object, path: str, cure: str) -> None:
    with pytest.raises(SpecError) as told:
        config_of(tree)
    assert path in str(told.value)
    assert cure in str(told.value)
    assert str(told.value).endswith(".")


@pytest.mark.parametrize(
    ("listen", "url", "itself"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080", True),
        ("127.0.0.1:8080", "http://LOCALHOST:8080/prefix", True),
        ("127.0.0.1:80", "http://0.0.0.0", True),
        ("127.0.0.1:8080", "http://127.1:8080", True),
        ("127.0.0.1:8080", "http://2130706433:8080", True),
        ("127.0.0.1:8080", "http://[::ffff:127.0.0.1]:8080", True),
        ("0.0.0.0:8080", f"http://{socket.gethostname()}:8080", True),
        ("localhost:8080", "http://[::1]:8080", True),
        ("0.0.0.0:8080", "http://127.0.0.1:8080", True),
        ("[::1]:8080", "http://[0:0:0:0:0:0:0:1]:8080", True),
        ("10.0.0.1:8080", "http://10.0.0.1:8080", True),
        ("gate:8080", "http://Gate:8080", True),
        ("127.0.0.1:8080", "http://127.0.0.1:8081", False),
        ("127.0.0.1:8080", "http://127.0.0.2:8080", False),
        ("0.0.0.0:8080", "http://10.0.0.1:8080", False),
        ("127.0.0.1:8080", "http://[::1]:8080", False),
    ],
)
def test_a_gateway_is_no_engine_of_its_own(listen: str, url: str, itself: bool) -> None:
    tree = {"listen": listen, "open": True, **models(engines=[ENGINE, {"url": url}])}
    if not itself:
        assert config_of(tree).models
        return
    with pytest.raises(SpecError, match=r"is this gateway itself; name the .*`\$\.models\.m\.engines\[1\]\.url`"):
        config_of(tree)


def test_the_file_and_the_entry_are_named(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text('[models.a]\n[models.b]\npolicy = "best"\n')
    with pytest.raises(SpecError, match=rf"The configuration {path} is wrong: .*`\$\.models\.b\.policy`"):
        config_from_file(path)
    path.write_text("")
    with pytest.raises(SpecError, match=f"{path} names no model"):
        config_from_file(path)


def test_more_keys_are_looked_for_beside_the_configuration(tmp_path: Path) -> None:
    path, keys = tmp_path / "gateway.toml", tmp_path / "keys.toml"
    path.write_text('keys_file = "keys.toml"\n[models.a]\n')
    with pytest.raises(UsageError, match=f"The keys_file {keys} cannot be read"):
        config_from_file(path)
    keys.write_text(f'[keys.alice]\nsha256 = "{"0" * 64}"\n')
    assert list(config_from_file(path).keys) == ["alice"]


@pytest.mark.parametrize(("models", "bounded"), [(["a"], True), (None, False), (["a", "b"], False)])
def test_a_budget_needs_a_price_for_each_model_that_its_key_may_use(models: object, bounded: bool) -> None:
    key = {"sha256": "0" * 64, "models": models, "budget": {"usd": 1}}
    tree = {"models": {"a": {}, "b": {}}, "prices": {"a": {"input": 1}}, "state": "s", "keys": {"k": key}}
    if bounded:
        assert config_of(tree).keys
        return
    with pytest.raises(SpecError, match=r"would not bound 'b', which has no price; .*`\$\.keys\.k\.budget`"):
        config_of(tree)


def test_an_open_gateway_must_be_asked_for() -> None:
    assert config_of({"listen": "0.0.0.0:80", "open": True}).open
    assert config_of({"listen": "0.0.0.0:80", "keys": {"a": {"sha256": "0" * 64}}}).keys
    for listen in ("8080", "a..b:80"):
        with pytest.raises(UsageError, match="HOST:PORT"):
            config_of({"listen": listen})
    with pytest.raises(UsageError, match=r"is a URL; leave out http://, and write 127\.0\.0\.1:8080\."):
        config_of({"listen": "http://127.0.0.1:8080/"})


def test_a_file_may_begin_with_a_mark_of_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[models.a]\n", "utf-8-sig")
    assert list(config_from_file(tmp_path / "a.toml").models) == ["a"]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        config_from_file(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("listen = ")
    with pytest.raises(UsageError, match="no TOML"):
        config_from_file(tmp_path / "bad.toml")


def test_the_pages_example_is_understood() -> None:
    page = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text("utf-8")
    _, _, rest = page.partition("```toml\n")
    told = config_of(tomllib.loads(rest.partition("```")[0]))
    assert told.limits == Limits()
    assert told.timeouts == Timeouts()
    assert told.drain_s == Config().drain_s
    assert [engine.weight for engine in told.models["llama"].engines] == [3, 1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--model NAME --engine URL"),
        (["none.toml"], "cannot be read"),
        (["none.toml", "--model", "m"], "leave it out"),
        (["--model", "m", "--engine", "nonsense"], "http://HOST:PORT"),
        (["--model", "m", "--engine", "http://a", "--listen", "1.2.3.4:5"], "open = true"),
    ],
)
def test_the_verb_says_what_is_wrong_in_one_sentence(options: list[str], said: str) -> None:
    assert said in refusal(options)


def test_an_address_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        assert "Choose another address, or end" in refusal([*GOOD, "--listen", listen])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_name_that_is_not_known_is_not_in_use(tmp_path: Path, workers: int) -> None:
    path = tmp_path / "g.toml"
    path.write_text(f'listen = "no.such.host.invalid:1"\nopen = true\nworkers = {workers}\n[models.m]\n')
    for verb in ([], ["check"]):
        said = refusal([*verb, str(path)])
        assert said.endswith("Choose an address of this machine, such as 127.0.0.1:8080.\n")


def refusal(options: list[str]) -> str:
    command = [sys.executable, "-m", "withstand", "gateway", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode in {2, 3}
    assert done.stderr.startswith("withstand: ")
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout
    return done.stderr


def test_a_stacks_file_is_told_from_a_gateways(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('[engines.a]\nkind = "llamacpp"\n')
    with pytest.raises(SpecError, match=r"s\.toml is a stack's file, not a gateway's: withstand up "):
        config_from_file(path)
