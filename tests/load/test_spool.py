"""Requests on their way to a worker."""

from pathlib import Path

import msgspec
import pytest

from driving import asked
from withstand.load.spool import SpoolReader, SpoolWriter
from withstand.request import Request

LARGE_BYTES = 500_000


def written(folder: Path, requests: list[Request]) -> SpoolReader:
    """A reader of what a writer, which must live on, has put down."""
    with SpoolWriter(folder, 1) as spool:
        for request in requests:
            spool.write(request)
        spool.finish()
        return SpoolReader(spool.path(0))


def test_a_little_is_read_at_a_time_so_that_what_is_due_need_not_wait(tmp_path: Path) -> None:
    requests = asked(2_000)
    reader = written(tmp_path, requests)
    reads = []
    while not reader.ended:
        reads.append(list(reader.read()))
    assert [r for some in reads for r in some] == requests
    assert max(len(msgspec.json.encode(some)) for some in reads) < 40_000
    reader.close()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_large_request_comes_whole(tmp_path: Path, place: int) -> None:
    requests = asked(3)
    large = msgspec.structs.replace(requests[place].messages[-1], content="x" * LARGE_BYTES)
    requests[place] = msgspec.structs.replace(requests[place], messages=(large,))
    reader = written(tmp_path, requests)
    read = []
    while not reader.ended:
        read += list(reader.read())
    assert read == requests
    reader.close()
