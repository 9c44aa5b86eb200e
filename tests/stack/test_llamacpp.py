"""How llama.cpp is run, without running it."""

from pathlib import Path

import pytest

from withstand import plugins
from withstand.errors import EngineError
from withstand.stack import llamacpp
from withstand.stack.engines.llamacpp import ENGINE
from withstand.stack.llamacpp import Settings
from withstand.stack.model import ModelFile

SETTINGS = Settings(host="127.0.0.1", port=8080, parallel=4, context=8192, threads=2)


def test_its_command_line() -> None:
    model = ModelFile(name="tiny", path=Path("/models/tiny.gguf"), sha256="0")
    service = llamacpp.service(model, SETTINGS, Path("engine.log"))
    assert " ".join(service.argv[1:]) == (
        "-P -m withstand.stack.llamacpp_server --model /models/tiny.gguf --alias tiny "
        "--host 127.0.0.1 --port 8080 --parallel 4 --context 8192 --threads 2"
    )
    assert service.env == {"GOMP_SPINCOUNT": "1000"}
    assert service.health_url == "http://127.0.0.1:8080/health"


def test_it_is_found_by_its_name() -> None:
    assert plugins.load("engines", "llamacpp", "engine") is ENGINE


def test_a_missing_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("withstand.stack.llamacpp.importlib.util.find_spec", lambda _: None)
    with pytest.raises(
        EngineError, match=r"not installed \(xllamacpp, .* missing\): install withstand's extra 'engine'"
    ):
        llamacpp.name()
