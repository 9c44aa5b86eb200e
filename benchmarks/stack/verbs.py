"""``withstand up`` and ``withstand down`` as their users give them, on a state folder of our own."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from withstand.stack.state import StackState, read_blueprint, read_state

_ASKED_S = 120.0


class Verbs:
    """Of one stack."""

    def __init__(self, home: Path, file: Path, name: str) -> None:
        self._file, self._name = file, name
        self._folder = home / "state" / "stacks" / name
        self._said = home / "said.log"
        (home / "tmp").mkdir()
        own = {"WITHSTAND_STATE": str(home / "state"), "TMPDIR": str(home / "tmp")}
        self._env = {**os.environ, **own}

    def up(self) -> "subprocess.Popen[bytes]":
        """Begun."""
        return self._give("up", str(self._file))

    def down(self) -> "subprocess.Popen[bytes]":
        """Begun."""
        return self._give("down", self._name)

    def _give(self, *verb: str) -> "subprocess.Popen[bytes]":
        with self._said.open("ab") as said:
            argv = (sys.executable, "-m", "withstand", *verb)
            return subprocess.Popen(argv, env=self._env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)

    def state(self) -> StackState | None:
        """As its supervisor has written it last."""
        return read_state(self._folder)

    def ports(self) -> set[int]:
        """Of all services."""
        blueprint = read_blueprint(self._folder)
        return {process.port for process in blueprint.processes} if blueprint else set()

    def ask(self) -> None:
        """One short request through the door; a stack that answers with an error is no stack.

        Raises:
            OSError: it does not answer 200.
        """
        blueprint = read_blueprint(self._folder)
        assert blueprint
        body = {"model": blueprint.model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
        head = {"content-type": "application/json"}
        url = f"{blueprint.door}/v1/chat/completions"
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), head), timeout=_ASKED_S):
            pass
