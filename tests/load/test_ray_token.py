"""Whether Ray's token is shown: settled from the environment and what the cluster wants, without Ray."""

import re

import pytest

from withstand.errors import MeasureError
from withstand.load.ray.token import env_for, env_for_own

SHOWN = {"RAY_AUTH_MODE": "token"}
GIVEN = {"RAY_AUTH_TOKEN": "t"}
WITHHELD = {**GIVEN, "RAY_AUTH_MODE": "disabled"}


@pytest.mark.parametrize(
    ("env", "wanted", "added"),
    [
        ({}, False, {}),
        ({}, None, {}),
        ({"HOME": "/home/with/.ray/auth_token"}, None, {}),
        ({"RAY_AUTH_TOKEN": ""}, None, {}),
        (GIVEN, True, SHOWN),
        (GIVEN, None, SHOWN),
        (GIVEN, False, {}),
        ({"RAY_AUTH_TOKEN_PATH": "where/it/lies"}, True, SHOWN),
        (WITHHELD, False, {}),
        (WITHHELD, None, {}),
        ({"RAY_AUTH_MODE": "token"}, True, {}),
        ({"RAY_AUTH_MODE": "TOKEN"}, None, {}),
    ],
)
def test_a_token_that_is_given_is_shown_unless_that_is_forbidden_or_not_wanted(
    env: dict[str, str], wanted: bool | None, added: dict[str, str]
) -> None:
    assert env_for(env, "It", wanted=wanted) == added


@pytest.mark.parametrize(
    ("env", "wanted", "said"),
    [
        ({}, True, "It wants a token. Set RAY_AUTH_TOKEN, or"),
        (WITHHELD, True, "It wants a token. Set RAY_AUTH_TOKEN, or"),
        ({"RAY_AUTH_MODE": "token"}, False, "It asks for no token, and"),
    ],
)
def test_what_would_not_go_well_is_said(env: dict[str, str], wanted: bool, said: str) -> None:
    with pytest.raises(MeasureError, match=re.escape(said)):
        env_for(env, "It", wanted=wanted)


def test_a_cluster_of_our_own_has_a_token_of_its_own() -> None:
    first, second = env_for_own({}), env_for_own({})
    assert len(first["RAY_AUTH_TOKEN"]) == 64
    assert first != second


@pytest.mark.parametrize("env", [GIVEN, {"RAY_AUTH_TOKEN_PATH": "where/it/lies"}, {"RAY_AUTH_MODE": "disabled"}])
def test_unless_somebody_has_settled_that(env: dict[str, str]) -> None:
    assert env_for_own(env) == {}
