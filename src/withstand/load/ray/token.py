"""Whether Ray's token is shown to a cluster. Ray decides that while it is imported, so this is settled before.

It knows where Ray looks for a token, never what the token is.
"""

from collections.abc import Mapping
from pathlib import Path

_MODE = "RAY_AUTH_MODE"
_TOKEN, _TOKEN_PATH = "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
_FILE = Path(".ray", "auth_token")


def auth_env(env: Mapping[str, str]) -> dict[str, str]:
    """What to add to the environment: `ray start` uses a token wherever there is one, and so do we.

    Ray by itself shows none to a cluster whose address is given, and then waits in vain for its answer.
    """
    if _MODE in env:
        return {}
    at_home = "HOME" in env and Path(env["HOME"], _FILE).is_file()
    there = env.get(_TOKEN) or env.get(_TOKEN_PATH) or at_home
    return {_MODE: "token"} if there else {}
