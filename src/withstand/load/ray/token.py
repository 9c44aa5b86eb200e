"""Whether Ray's token is shown to a cluster. Ray decides that while it is imported, so this is settled before.

It knows which variables give a token, never what the token is.
"""

import secrets
from collections.abc import Mapping

from withstand.errors import MeasureError

_MODE = "RAY_AUTH_MODE"
_TOKEN, _TOKEN_PATH = "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
CURE = f"Set {_TOKEN}, or {_TOKEN_PATH}, to that of its nodes ({_MODE}=token shows the one in ~/.ray, disabled none)"


def env_for(env: Mapping[str, str], where: str, *, wanted: bool | None) -> dict[str, str]:
    """What to add to the environment: a token that was given is shown, but to a cluster that asks for none.

    Ray by itself shows none to a cluster whose address is given. One that merely lies in the home folder is no order to
    show it. None = nobody knows whether it is wanted.

    Raises:
        MeasureError: the cluster wants one and is shown none, or the other way round; neither goes well.
    """
    mode = env.get(_MODE, "").lower()
    if wanted and (mode == "disabled" or not (mode or _given(env))):
        raise MeasureError(f"{where} wants a token. {CURE}.")
    if wanted is False and mode == "token":
        raise MeasureError(
            f"{where} asks for no token, and Ray starts no worker for whoever shows one: set {_MODE}=disabled."
        )
    return {_MODE: "token"} if _given(env) and not mode and wanted is not False else {}


def env_for_own(env: Mapping[str, str]) -> dict[str, str]:
    """The same for a cluster that is started for the run: a token of its own, which ends with it.

    Ray would make one and leave it in the home folder, where it changes what the next `ray start` does.
    """
    return {} if _given(env) or _MODE in env else {_TOKEN: secrets.token_hex(32)}


def _given(env: Mapping[str, str]) -> bool:
    return bool(env.get(_TOKEN) or env.get(_TOKEN_PATH))
