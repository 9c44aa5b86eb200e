"""Whether Ray's token is shown: settled from the environment, without Ray."""

import pytest

from withstand.load.ray.token import auth_env

TOKEN = {"RAY_AUTH_MODE": "token"}


@pytest.mark.parametrize(
    ("env", "added"),
    [
        ({}, {}),
        ({"HOME": "/home/with/.ray/auth_token"}, {}),
        ({"RAY_AUTH_TOKEN": "t"}, TOKEN),
        ({"RAY_AUTH_TOKEN": ""}, {}),
        ({"RAY_AUTH_TOKEN_PATH": "where/it/lies"}, TOKEN),
        ({"RAY_AUTH_TOKEN": "t", "RAY_AUTH_MODE": "disabled"}, {}),
    ],
)
def test_a_token_that_is_given_is_shown_unless_that_is_forbidden(env: dict[str, str], added: dict[str, str]) -> None:
    assert auth_env(env) == added
