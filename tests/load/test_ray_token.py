"""Whether Ray's token is shown: settled from the environment, without Ray."""

from pathlib import Path

import pytest

from withstand.load.ray.token import auth_env

TOKEN = {"RAY_AUTH_MODE": "token"}


@pytest.mark.parametrize(
    ("env", "added"),
    [
        ({}, {}),
        ({"RAY_AUTH_TOKEN": "t"}, TOKEN),
        ({"RAY_AUTH_TOKEN": ""}, {}),
        ({"RAY_AUTH_TOKEN_PATH": "where/it/lies"}, TOKEN),
        ({"RAY_AUTH_TOKEN": "t", "RAY_AUTH_MODE": "disabled"}, {}),
    ],
)
def test_a_token_that_is_there_is_shown_unless_that_is_forbidden(env: dict[str, str], added: dict[str, str]) -> None:
    assert auth_env(env) == added


def test_the_file_of_ray_counts_as_well(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert auth_env(home) == {}
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("t")
    assert auth_env(home) == TOKEN
