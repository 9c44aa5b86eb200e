"""How a service has ended is a line of its own in its log, and one that leaves the foreground is told so."""

import re
import sys

import pytest

from stacks import command, shell, stack, until, up
from withstand.errors import EngineError
from withstand.stack.standing import standing_of
from withstand.stack.state import log_of
from withstand.stack.supervision import Phase

pytestmark = pytest.mark.usefixtures("state")


def test_what_is_noted_is_not_glued_to_a_line_that_has_no_end() -> None:
    standing = up(stack(a=shell("(sleep 1; printf unfinished; kill -9 $$) & printf begun"), b=command()))

    def is_over() -> bool:
        now = standing_of("s")
        return bool(now and now.state.units[0].phase is Phase.FAILED)

    until(is_over)
    noted = r"\[withstand \S+\] a"
    said = log_of(standing.folder, "a").read_text()
    assert re.fullmatch(rf"{noted} starts\nbegununfinished\n{noted} ended \(killed by SIGKILL.*unfinished\n", said), (
        said
    )


@pytest.mark.parametrize("told", ["", "echo went to the background; "])
def test_one_that_goes_to_the_background_is_told_to_stay(told: str) -> None:
    goes = {"kind": "command", "args": ["sh", "-c", f"{told}sleep 600 & exit 0"], "served_as": "m", "stop_s": 0}
    with pytest.raises(
        EngineError, match=r"a ended \(exit code 0\).*; a service must stay in the foreground until it is told to end\."
    ):
        up(stack(a=goes))


def test_one_that_fails_or_was_ready_is_not_told_to_stay() -> None:
    fails = {"kind": "command", "args": [sys.executable, "-c", "exit('no model')"], "served_as": "m"}
    with pytest.raises(EngineError, match=r"a ended \(exit code 1\): no model\. Its logs"):
        up(stack(a=fails))
