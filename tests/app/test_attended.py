"""When a stage is ended while it goes on, without a rule of its user's."""

from pathlib import Path

import msgspec

from withstand import clock
from withstand.app.attended import attend
from withstand.app.tail import RecordTail
from withstand.load.job import Report
from withstand.load.stage import Order
from withstand.runs import Manifest, RunFolder, this_process
from withstand.spec import Plan, Stage


def test_a_dead_server_ends_a_closed_loop_that_only_its_prompts_would(tmp_path: Path) -> None:
    stage = Stage(name="a", max_concurrency=4, num_prompts=1000)
    manifest = Manifest(version="0", created_utc="", anchor=clock.anchor(), plan=Plan(), writer=this_process())
    tail = RecordTail(RunFolder(tmp_path, manifest), 0)
    attended = attend(stage, [], tail)
    assert attended
    assert attended.order(Report(unheard_ns=59_000_000_000), 1) is None
    assert attended.order(Report(unheard_ns=61_000_000_000), 10_000_000_000) is Order.DRAIN
    assert attended.ending
    assert "no byte came from the server" in attended.ending.because
    assert attend(msgspec.structs.replace(stage, duration_s=300), [], tail) is None
