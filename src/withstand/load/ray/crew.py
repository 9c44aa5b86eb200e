"""The hands of one stage: placed on nodes, given their work, emptied while it goes on, and let go.

Per worker a ``Post``: it brings the spool to the hand and the records into the run's folder, so that a lost node costs
only what was unfinished, and what was still on its way here. All of a worker's times are its own host's; only the
epoch and the start are translated, both by the one offset that was measured just before.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import ray
from ray.exceptions import ActorUnavailableError, NodeDiedError, RayError

from withstand import __version__, clock
from withstand.errors import MeasureError, StorageError
from withstand.load.ear import Ear
from withstand.load.job import Command, Job, Report
from withstand.load.ray.cluster import Cluster, Node
from withstand.load.ray.hand import About, Haul
from withstand.load.ray.offsets import measure
from withstand.load.ray.words import Word
from withstand.load.sink import RecordSink
from withstand.load.texts import TextSink
from withstand.record import ClockOffset, Place
from withstand.wire.reply import one_line

_PLACE_NS = 30_000_000_000
_CLOSE_S = 8.0
_POLL_S = 0.1
_SILENCE_S = 5.0
_PIECE_BYTES = 1 << 20
_PIECES_UNDERWAY_MAX = 4
_TOLD_CHARS_MAX = 300
_decode = msgspec.json.Decoder(Report).decode

_PLAIN = (
    (ActorUnavailableError, "the connection to its actor broke"),
    (NodeDiedError, "the node is gone"),
)

Say = Callable[[Word], None]
LOST = (RayError, ConnectionError)
"""What a call to a node raises when the node, the actor or the way there is gone."""


class Post:
    """One worker far away, and what lies between it and us."""

    def __init__(self, job: Job, node: Node, hand: Any, say: Say) -> None:
        self.node = node
        self.over = False
        self.polled: Any = None
        """The call that waits for the hand's next haul."""
        self._job = job
        self._hand = hand
        self._say = say
        self._about_call = hand.about.remote()
        self._about_due_ns = clock.now_ns() + _PLACE_NS
        self._about = About(__version__, 0)
        self._place: Place | None = None
        self._spool = job.spool_path.open("rb")
        self._sink: RecordSink | None = None
        self._texts: TextSink | None = None
        self._underway: list[Any] = []
        self._silent_ns = 0
        """For how long we have listened since its last word."""

    # Before the start.

    def check(self) -> None:
        """Wait until the hand is there.

        Raises:
            MeasureError: Ray cannot place it, or another withstand answers.
        """
        timeout_s = max(0.0, (self._about_due_ns - clock.now_ns()) / 1e9)
        done, _ = ray.wait([self._about_call], timeout=timeout_s)
        if not done:
            raise MeasureError(f"Ray has no free core on node {self.node.host}; free one, or use fewer --workers.")
        try:
            self._about = ray.get(self._about_call)
        except LOST as e:
            raise MeasureError(
                f"Node {self.node.host} cannot take a worker: {_reason(e)}. "
                f"Is withstand {__version__} installed there, with the same Python?"
            ) from None
        if self._about.version != __version__:
            raise MeasureError(
                f"Node {self.node.host} has withstand {self._about.version}, this machine {__version__}; "
                "install the same."
            )

    def ship_all(self) -> None:
        """Bring over what the spool holds."""
        while not self.ship():
            clock.sleep_s(0.001)

    def ship(self) -> bool:
        """Send on what has been written to the spool, a few pieces at a time; whether all of it has arrived.

        Raises:
            RayError: the hand is gone, or its disk is full.
        """
        if self._underway:
            done, self._underway = ray.wait(self._underway, num_returns=len(self._underway), timeout=0)
            ray.get(done)
        while len(self._underway) < _PIECES_UNDERWAY_MAX and (piece := self._spool.read(_PIECE_BYTES)):
            self._underway.append(self._hand.feed.remote(piece))
        return not self._underway

    def measure(self) -> ClockOffset:
        """How far the node's clock is from ours.

        Raises:
            RayError: the hand does not answer.
        """
        return measure(lambda: ray.get(self._hand.now_ns.remote(), timeout=_SILENCE_S))

    def settle(self, offset: ClockOffset) -> None:
        """The run's instants are translated by this offset from now on."""
        self._place = Place(host=self.node.host, niceness=self._about.niceness, clock=offset)
        self._say(Word(worker=self._job.worker, place=self._place))

    def open(self) -> None:
        """Start the worker, with the run's epoch on its own clock.

        Raises:
            MeasureError: this node cannot carry the load, or does not reach the target.
        """
        job = msgspec.structs.replace(self._job, epoch_ns=self._translated(self._job.epoch_ns))
        self._sink = RecordSink(job.records_path)
        self._texts = TextSink(Path(job.texts), job.text_share) if job.texts else None
        cacert = Path(job.cacert).read_bytes() if job.cacert else None
        refused = ray.get(self._hand.open.remote(job, cacert))
        if refused:
            raise MeasureError(f"Node {self.node.host}: {refused}")
        self._ask()

    def _translated(self, ours_ns: int) -> int:
        assert self._place is not None
        return ours_ns + self._place.clock.offset_ns

    # While it goes on.

    def tell(self, command: Command) -> None:
        """Pass a command on; a start is translated."""
        if command.start_ns is not None:
            command = msgspec.structs.replace(command, start_ns=self._translated(command.start_ns))
        self._hand.tell.remote(msgspec.json.encode(command))

    def _ask(self) -> None:
        self._silent_ns = 0
        self.polled = self._hand.poll.remote(_POLL_S)

    def take(self) -> None:
        """Empty the hand: files into the folder first, then what was said, so that no report runs ahead of them."""
        try:
            haul: Haul = ray.get(self.polled)
        except LOST as e:
            self.give_up(_reason(e))
            return
        try:
            self._store(haul)
        except StorageError as e:
            self.refuse(str(e), storage=True)
            return
        for line in haul.lines:
            self._say(Word(worker=self._job.worker, report=_decode(line)))
        if haul.gone is None:
            self._ask()
        else:
            self._finish(haul.gone)

    def _store(self, haul: Haul) -> None:
        assert self._sink is not None
        if haul.records:
            self._sink.write(haul.records)
        if self._texts and haul.texts:
            self._texts.write(haul.texts)

    def _finish(self, gone: str) -> None:
        """The worker has ended; once more the clocks are compared, so that a drift is seen."""
        assert self._place is not None
        try:
            drift_ns = self.measure().offset_ns - self._place.clock.offset_ns
        except LOST:
            drift_ns = None
        agreed = msgspec.structs.replace(self._place.clock, drift_ns=drift_ns)
        self._say(Word(worker=self._job.worker, place=msgspec.structs.replace(self._place, clock=agreed)))
        self.lose(gone)

    def watch(self, listened_ns: int) -> None:
        """A node that has been cut off raises nothing: it only falls silent."""
        self._silent_ns += listened_ns
        if self._silent_ns > _SILENCE_S * 1e9:
            self.give_up(f"no word for {_SILENCE_S:g} s")

    def refuse(self, error: str, *, storage: bool = False) -> None:
        """It cannot go on, and this is why."""
        self._say(Word(worker=self._job.worker, report=Report(error=error, storage=storage)))
        self.lose(error)

    def lose(self, told: str) -> None:
        """It has ended."""
        self.over = True
        self._say(Word(worker=self._job.worker, gone=f"node {self.node.host}: {told}"))

    def give_up(self, told: str) -> None:
        """It is lost to us; should it live all the same, it must not go on sending what is written off here."""
        self.lose(told)
        self.release()

    # At the end.

    @property
    def worker(self) -> int:
        """Whose post this is."""
        return self._job.worker

    def end(self) -> None:
        """Have the hand end a worker that says nothing."""
        self.over = True
        self._hand.close.remote()

    def begin_close(self) -> Any:
        """Have the hand end its worker and clean up; the call to wait for."""
        self._spool.close()
        for sink in (self._sink, self._texts):
            if sink:
                sink.close()
        return self._hand.close.remote()

    def release(self) -> None:
        """End the actor, whatever state it is in."""
        ray.kill(self._hand)


class Crew:
    """All posts of a stage."""

    def __init__(self, cluster: Cluster, jobs: Sequence[Job], say: Say) -> None:
        nodes = cluster.nodes()
        placed = [(job, nodes[i % len(nodes)]) for i, job in enumerate(jobs)] if nodes else []
        self._posts = [Post(job, node, cluster.hand(node), say) for job, node in placed]
        self._offsets: dict[str, ClockOffset] = {}
        self._ear = Ear()
        if not nodes:
            for job in jobs:
                say(Word(worker=job.worker, gone="no node of the Ray cluster offers a core"))

    def prepare(self) -> None:
        """Bring the spools there, agree on the clocks, start the workers; the first refusal is the end of it."""
        for step in (Post.check, Post.ship_all, self._agree, Post.open):
            for post in self._posts:
                if not _done(step, post):
                    return

    def _agree(self, post: Post) -> None:
        """Once a node: its workers share its clock."""
        if post.node.id not in self._offsets:
            self._offsets[post.node.id] = post.measure()
        post.settle(self._offsets[post.node.id])

    def tell(self, command: Command) -> None:
        """Give a command to all that live."""
        for post in self._living():
            post.tell(command)

    def give_up(self, worker: int) -> None:
        """The run does not wait for this one any more."""
        for post in self._living():
            if post.worker == worker:
                post.end()

    def turn(self, wait_s: float) -> None:
        """Take what has come within ``wait_s``, send on what has been written."""
        polled = {post.polled: post for post in self._living() if post.polled is not None}
        if not polled:
            clock.sleep_s(wait_s)
            return
        ready, _ = ray.wait(list(polled), timeout=wait_s)
        if ready:
            ready, _ = ray.wait(list(polled), num_returns=len(polled), timeout=0)
        for call in ready:
            polled[call].take()
        listened_ns = self._ear.listened_ns()
        for post in self._living():
            post.watch(listened_ns)
            _ship_on(post)

    def _living(self) -> list[Post]:
        return [post for post in self._posts if not post.over]

    def dismiss(self) -> None:
        """At the end no actor is left, and no process of one."""
        closing = [post.begin_close() for post in self._posts]
        if closing:
            ray.wait(closing, num_returns=len(closing), timeout=_CLOSE_S)
        for post in self._posts:
            post.release()


def _done(step: Callable[[Post], None], post: Post) -> bool:
    """Whether a step towards the start went well; if not, the post has said why."""
    try:
        step(post)
    except LOST as e:
        post.refuse(f"Node {post.node.host} was lost before the start: {_reason(e)}.")
    except (MeasureError, OSError) as e:
        post.refuse(str(e))
    return not post.over


def _ship_on(post: Post) -> None:
    try:
        post.ship()
    except LOST as e:
        post.give_up(_reason(e))


def _reason(e: BaseException) -> str:
    """In plain words; Ray's own account goes where the rest of its talk goes."""
    sys.stderr.write(f"{e}\n")
    for kind, words in _PLAIN:
        if isinstance(e, kind):
            return words
    lines = str(e).strip().splitlines()
    return one_line(lines[-1] if lines else type(e).__name__, _TOLD_CHARS_MAX).rstrip(".")
