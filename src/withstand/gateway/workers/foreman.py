"""The parent of the workers: it starts them, starts those again that die, and passes on what concerns all.

It serves nobody itself, so it is a plain loop over sockets; a worker that hangs keeps nobody from anything but its
metrics.
"""

import math
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable

from msgspec import Struct

from withstand import clock
from withstand.gateway.telling import is_hung_up, tell, tell_of_waiting
from withstand.gateway.workers.board import Board
from withstand.gateway.workers.history import with_change
from withstand.gateway.workers.pages import lasting
from withstand.gateway.workers.words import (
    Begin,
    Done,
    Lines,
    Make,
    Order,
    Page,
    Pages,
    Ready,
    Scrape,
    Tell,
    Waits,
    Word,
    line_of,
)

_PAGE_S = 0.5
"""How long a worker's metrics are waited for; then what it said before is told."""
_PAUSE_S = 1.0
"""Before a worker that died young is started again."""
_YOUNG_S = 5.0
_WAITS_S = 1.0
"""At the end; by then every worker has said what it waits for."""
_LOOK_S = 0.25
_KILL_S = 3.0
"""After the second signal to end; who is there still hangs."""


class Station(Struct, frozen=True):
    """Where a worker works."""

    number: int
    board: Board
    sock: socket.socket
    """To the foreman."""


class _Worker:
    """One, as the foreman sees it."""

    def __init__(self, number: int, pid: int, sock: socket.socket) -> None:
        self.number = number
        self.pid = pid
        self.sock = sock
        self.lines = Lines()
        self.unsent = bytearray()
        self.page = ""
        self.telling = False
        self.ready = False
        self.born_s = _now_s()


class _Asked(Struct):
    """Somebody wants the metrics of all."""

    by: int
    number: int
    until_s: float


class Foreman:
    """``work`` is what a worker does, in its process, and returns the exit code."""

    def __init__(self, count: int, board: Board, work: Callable[[Station], int]) -> None:
        self._count = count
        self._board = board
        self._work = work
        self._workers: dict[int, _Worker] = {}
        self._absent: dict[int, float] = {}
        """Those who died, and when they are started again."""
        self._made: list[Make] = []
        self._pending: dict[tuple[int, int], Make] = {}
        """All have been told, and whether it could be made is not known yet."""
        self._asked: list[_Asked] = []
        self._gone = ""
        """What dead workers had counted."""
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._ending = False
        self._ending_s = 0.0
        self._kill_s = math.inf
        self._waits: list[Waits] = []
        """Not told of yet."""
        self._code = 0
        self._settled = False
        self._to_reload = False

    def run(self, ready: Callable[[], None]) -> int:
        """Until SIGTERM or SIGINT, and all workers have ended; the exit code. ``ready``: all listen."""
        self._listen_to_signals()
        self._start(0)
        while self._workers or (self._absent and not self._ending):
            for key, events in self._selector.select(_LOOK_S):
                if key.data is None:
                    self._hear_signals()
                elif key.data.sock.fileno() >= 0:
                    self._serve(key.data, events)
            self._reap()
            self._look()
            if not self._settled and not self._ending and self._all_ready():
                if len(self._workers) < self._count:  # the first has shown that the configuration is good
                    for number in range(1, self._count):
                        self._start(number)
                else:
                    self._settled = True
                    ready()
        return self._code

    def _all_ready(self) -> bool:
        return bool(self._workers) and all(worker.ready for worker in self._workers.values())

    # Processes.

    def _start(self, number: int) -> None:
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            ours.close()
            self._be_worker(Station(number, self._board, theirs))
        theirs.close()
        ours.setblocking(False)
        worker = self._workers[number] = _Worker(number, pid, ours)
        self._selector.register(ours, selectors.EVENT_READ, worker)
        for change in (*self._made, *self._pending.values()):
            self._say(worker, change)
        self._say(worker, Begin())

    def _be_worker(self, station: Station) -> None:
        """In the new process; it never returns."""
        code = 3
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until it listens
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C goes to all; the foreman passes it on
            self._selector.close()
            for sock in (self._wake, self._woken, *(worker.sock for worker in self._workers.values())):
                sock.close()
            self._board.as_worker(station.number)
            code = self._work(station)
        except BaseException:  # noqa: BLE001  nothing of it may go up into the foreman's own frames
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        for worker in list(self._workers.values()):
            pid, status = os.waitpid(worker.pid, os.WNOHANG)
            if pid:
                self._bury(worker, os.waitstatus_to_exitcode(status))

    def _bury(self, worker: _Worker, code: int) -> None:
        del self._workers[worker.number]
        if worker.sock.fileno() >= 0:
            self._selector.unregister(worker.sock)
            worker.sock.close()
        self._board.forget(worker.number)
        for mark in [mark for mark in self._pending if mark[0] == worker.number]:
            self._remember(self._pending.pop(mark), good=True)  # the others have made it, if it could be made
        if worker.page:
            self._gone = lasting([page for page in (self._gone, worker.page) if page])
        self._code = max(self._code, code)
        if self._ending:
            return
        if not self._settled:  # it has said why
            self._code = self._code or 3
            self._end()
            return
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        tell(f"Worker {worker.number} (pid {worker.pid}) {how}, and its requests are lost; it is started again.")
        young = _now_s() - worker.born_s < _YOUNG_S
        self._absent[worker.number] = _now_s() + (_PAUSE_S if young else 0.0)

    def _end(self) -> None:
        """Once: go on to the end. Twice: at once."""
        if self._ending:
            self._kill_s = min(self._kill_s, _now_s() + _KILL_S)
        else:
            self._ending, self._ending_s = True, _now_s()
        self._absent.clear()
        for worker in self._workers.values():
            os.kill(worker.pid, signal.SIGTERM)

    def _look(self) -> None:
        now_s = _now_s()
        if self._to_reload and self._settled and self._workers:
            self._to_reload = False
            os.kill(next(iter(self._workers.values())).pid, signal.SIGHUP)  # it reads the file, and tells all
        for number in [number for number, at_s in self._absent.items() if at_s <= now_s]:
            del self._absent[number]
            self._start(number)
        self._answer_scrapes(now_s)
        if now_s >= self._kill_s:
            for worker in self._workers.values():
                os.kill(worker.pid, signal.SIGKILL)
        if self._waits and now_s - self._ending_s >= _WAITS_S:
            tell_of_waiting(sum(each.requests for each in self._waits), max(each.most_s for each in self._waits))
            self._waits.clear()

    # Signals.

    def _listen_to_signals(self) -> None:
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        self._selector.register(self._woken, selectors.EVENT_READ, None)

    def _hear_signals(self) -> None:
        for number in self._woken.recv(1 << 10):
            if number in {signal.SIGTERM, signal.SIGINT}:
                self._end()
            elif number == signal.SIGHUP and not is_hung_up():
                self._to_reload = True
            elif number == signal.SIGHUP and not self._ending:
                self._end()

    # Words.

    def _serve(self, worker: _Worker, events: int) -> None:
        if events & selectors.EVENT_READ:
            try:
                data = worker.sock.recv(1 << 18)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:  # it is about to die
                self._selector.unregister(worker.sock)
                worker.sock.close()
                return
            for word in worker.lines.feed(data):
                self._hear(worker, word)
        if events & selectors.EVENT_WRITE:
            self._send(worker)

    def _say(self, worker: _Worker, word: Word) -> None:
        worker.unsent += line_of(word)
        self._send(worker)

    def _send(self, worker: _Worker) -> None:
        if worker.sock.fileno() < 0:
            return
        try:
            del worker.unsent[: worker.sock.send(worker.unsent)]
        except BlockingIOError:
            pass
        except OSError:  # it dies, which is heard elsewhere
            worker.unsent.clear()
        more = selectors.EVENT_WRITE if worker.unsent else 0
        self._selector.modify(worker.sock, selectors.EVENT_READ | more, worker)

    def _hear(self, worker: _Worker, word: Word) -> None:
        match word:
            case Ready():
                worker.ready = True
            case Order():
                change = Make(worker.number, word.number, word.kind, word.told)
                self._pending[change.by, change.number] = change
                for each in self._workers.values():
                    self._say(each, change)
            case Done():
                self._remember(self._pending.pop((worker.number, word.number)), good=word.good)
            case Scrape():
                self._asked.append(_Asked(worker.number, word.number, _now_s() + _PAGE_S))
                for each in self._workers.values():
                    if each is not worker and not each.telling:
                        each.telling = True
                        self._say(each, Tell())
            case Waits():
                self._waits.append(word)
            case Page():
                worker.page, worker.telling = word.text, False
            case _:
                raise AssertionError(word)

    def _remember(self, change: Make, *, good: bool) -> None:
        if good:
            self._made = with_change(self._made, change)

    def _answer_scrapes(self, now_s: float) -> None:
        """Those for whom all others have told their numbers, or who have waited long enough."""
        for asked in tuple(self._asked):
            others = [worker for worker in self._workers.values() if worker.number != asked.by]
            if now_s < asked.until_s and any(worker.telling for worker in others):
                continue
            self._asked.remove(asked)
            if asked.by in self._workers:
                texts = [text for text in (self._gone, *(worker.page for worker in others)) if text]
                self._say(self._workers[asked.by], Pages(asked.number, texts))


def _now_s() -> float:
    return clock.now_ns() / 1e9
