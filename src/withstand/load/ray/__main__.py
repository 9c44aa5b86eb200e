"""The process between a run and a Ray cluster.

``python -m withstand.load.ray ADDRESS CPUS`` reads orders from its standard input and writes words to its standard
output. Whatever Ray prints goes to standard error, whatever brings Ray down brings down this process only, and when
standard input ends, the run is over or dead: everything is let go.
"""

import os
import signal
import sys
from collections.abc import Callable

import msgspec

from withstand.errors import MeasureError
from withstand.load.lines import say_line
from withstand.load.ray.door import door_of, knock, wants_token
from withstand.load.ray.token import env_for
from withstand.load.ray.words import Word

_STDOUT, _STDERR = 1, 2


def _own_stdout() -> Callable[[Word], None]:
    """Words go where standard output went; the name itself now means standard error, for Ray prints to it."""
    descriptor = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)

    return lambda word: say_line(descriptor, msgspec.json.encode(word))


def _settle_token(address: str) -> None:
    """What Ray is to read about tokens while it is imported.

    Raises:
        MeasureError: nobody is there, or we would not get along.
    """
    door = door_of(address)
    if door:
        knock(door, address)
    where = f"The Ray cluster at {address}"
    os.environ.update(env_for(os.environ, where, wanted=wants_token(door) if door else None))


def _serve(address: str, cpus: int, say: Callable[[Word], None]) -> None:
    _settle_token(address)
    from withstand.load.ray.bridge import Bridge  # noqa: PLC0415 - imports Ray
    from withstand.load.ray.cluster import Cluster  # noqa: PLC0415 - same

    cluster = Cluster(address, cpus)
    try:
        say(Word(hosts=tuple(node.host for node in cluster.nodes()), started=cluster.started))
        Bridge(cluster, say).serve()
    except BrokenPipeError:
        return
    finally:
        cluster.close()


def main(address: str, cpus: int) -> None:
    """Connect, say so, serve, leave."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    say = _own_stdout()
    try:
        _serve(address or os.environ.get("RAY_ADDRESS", ""), cpus, say)
    except MeasureError as e:
        say(Word(refused=str(e)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
