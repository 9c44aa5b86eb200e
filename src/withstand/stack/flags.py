"""Whether the programs of a blueprint know the options that they would be given: each is asked for its ``--help``.

Engines rename options from one version to the next; a start that fails after minutes of loading says it late.
"""

import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping

from msgspec import Struct

from withstand.stack.blueprint import Process

_HELP = {"vllm": "--help=all", **dict.fromkeys(("llamacpp", "sglang", "tgi", "trtllm", "transformers"), "--help")}
"""By kind: other programs are not asked, for nobody knows what they would do."""
_HELP_S = 120.0
_FLAG = re.compile(r"(?<![\w-])--[a-zA-Z][\w-]*")


class Checked(Struct, frozen=True):
    """One service: the options that its program does not know, or why that could not be told."""

    name: str
    unknown: tuple[str, ...] = ()
    why_not: str | None = None
    is_asked: bool = True
    """Whether programs of its kind are asked at all."""


def checked(processes: Iterable[Process], environments: Mapping[str, Mapping[str, str]]) -> list[Checked]:
    """Of each; ``environments`` are theirs by name."""
    return [_checked(process, environments.get(process.name, {})) for process in processes]


def unknown_flags(argv: Iterable[str], text: str) -> tuple[str, ...]:
    """Those that a help's text does not name; ``--no-x`` and ``--x`` stand for each other, as do ``-`` and ``_``."""
    known = {_plain(flag) for flag in _FLAG.findall(text)}
    return tuple(flag for flag in _flags(argv) if _plain(flag) not in known)


def _flags(argv: Iterable[str]) -> list[str]:
    return [found.group() for part in argv if (found := _FLAG.match(part))]


def _plain(flag: str) -> str:
    return flag.replace("_", "-").removeprefix("--").removeprefix("no-")


def why_absent(process: Process, env: Mapping[str, str]) -> str | None:
    """Why its program cannot be started; None = it is there."""
    program, path = process.argv[0], env.get("PATH") or os.environ.get("PATH")
    if shutil.which(program, path=path):
        return None
    if shutil.which(program, os.F_OK, path):
        return f"{program} may not be executed"
    return f"there is no program {program}"


def _checked(process: Process, env: Mapping[str, str]) -> Checked:
    if process.kind not in _HELP:
        return Checked(process.name, is_asked=False)
    try:
        done = subprocess.run(  # noqa: S603  the argv of the blueprint, without a shell
            _asking(process),
            env={**os.environ, **env, "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_HELP_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        return Checked(process.name, why_not=str(e))
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    if done.returncode != 0 or not _FLAG.search(text):
        lines = [line for line in text.splitlines() if line.strip()]
        return Checked(process.name, why_not=lines[-1] if lines else f"exit code {done.returncode}")
    return Checked(process.name, unknown=unknown_flags(process.argv, text))


def _asking(process: Process) -> tuple[str, ...]:
    """The program up to its first option, and the word for help."""
    words = tuple(itertools.takewhile(lambda part: not _FLAG.match(part), process.argv))
    if "serve" in words:  # a model behind a subcommand would be taken for a topic
        words = words[: words.index("serve") + 1]
    return (*words, _HELP[process.kind])
