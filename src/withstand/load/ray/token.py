"""Whether Ray's token is shown to a cluster. Ray decides that while it is imported, so this is settled before.

It knows which variables give a token, never what the token is.
"""

from collections.abc import Mapping

_MODE = "RAY_AUTH_MODE"
_TOKEN, _TOKEN_PATH = "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"


def auth_env(env: Mapping[str, str]) -> dict[str, str]:
    """What to add to the environment: a token that was given is shown.

    Ray by itself shows none to a cluster whose address is given, and then waits in vain for its answer. One that merely
    lies in the home folder is no order to show it: not every cluster bears that.
    """
    given = env.get(_TOKEN) or env.get(_TOKEN_PATH)
    return {_MODE: "token"} if given and _MODE not in env else {}
