"""Gateways that need not be imported again: forked from a process that has done that, and does nothing else.

Each is a process of its own with its own environment, folder, output and end, as `subprocess.Popen` would have it; it
saves half a second of a core. The three processes: the nursery, what waits for one gateway, and the gateway.
"""

import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import cache
from importlib import import_module
from typing import IO, Any

PROGRAM = "withstand.gateway"
_LOADED = ("withstand.gateway.key_verbs", "withstand.gateway.preflight", "withstand.gateway.server")
_SIZE_BYTES = 4


class Forked:
    """As much of a Popen with pipes of text as tests need."""

    def __init__(self, *arguments: str) -> None:
        order = json.dumps({"argv": arguments, "env": dict(os.environ), "cwd": os.getcwd()}).encode()  # noqa: PTH109
        out, err, life = [os.pipe() for _ in range(3)]
        nursery = _nursery()
        socket.send_fds(nursery, [len(order).to_bytes(_SIZE_BYTES)], [out[1], err[1], life[1]])
        nursery.sendall(order)
        for _, write in (out, err, life):
            os.close(write)
        self.stdout, self.stderr = open(out[0], encoding="utf-8"), open(err[0], encoding="utf-8")  # noqa: PTH123, SIM115
        self._life = open(life[0], "rb", buffering=0)  # noqa: PTH123, SIM115
        self.pid = int(self._life.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        if (code := self._look(timeout)) is None:
            raise subprocess.TimeoutExpired(PROGRAM, timeout or 0)
        return code

    def _look(self, timeout_s: float | None) -> int | None:
        if self.returncode is None and select.select([self._life], [], [], timeout_s)[0]:
            self.returncode = int(self._life.readline())
            self._life.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float = 60.0) -> tuple[str, str]:
        """The rest of both, and its end."""
        until_s = time.monotonic() + timeout
        rest = {pipe: _Rest(pipe) for pipe in (self.stdout, self.stderr)}
        for each in rest.values():
            each.join(max(0.0, until_s - time.monotonic()))
            if each.is_alive():
                raise subprocess.TimeoutExpired(PROGRAM, timeout)
        self.wait(max(0.0, until_s - time.monotonic()))
        return rest[self.stdout].text, rest[self.stderr].text


class _Rest(threading.Thread):
    """Reads a pipe to its end; of one that is closed nothing is left."""

    def __init__(self, pipe: IO[str]) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self.text = ""
        self.start()

    def run(self) -> None:
        if not self._pipe.closed:
            with self._pipe:
                self.text = self._pipe.read()


@cache
def _nursery() -> socket.socket:
    """One for all tests of this process; it ends with us."""
    ours, its = socket.socketpair(socket.AF_UNIX)
    command = [sys.executable, "-P", __file__, str(its.fileno())]
    _NURSERIES.append(subprocess.Popen(command, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL))
    its.close()
    return ours


_NURSERIES: list["subprocess.Popen[bytes]"] = []
"""Kept, or Python would complain of a process that nobody waits for."""


def _orders(sock: socket.socket) -> dict[str, Any]:
    """Returns in each process that is to be a gateway, with what was ordered."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        size, pipes, _, _ = socket.recv_fds(sock, _SIZE_BYTES, 3)
        if not size:
            sys.exit(0)
        order = sock.recv(int.from_bytes(size), socket.MSG_WAITALL)
        if os.fork() == 0:
            sock.close()
            return _born(json.loads(order), *pipes)
        for pipe in pipes:
            os.close(pipe)


def _born(order: dict[str, Any], out: int, err: int, life: int) -> dict[str, Any]:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        for new, old in ((out, 1), (err, 2)):
            os.dup2(new, old)
        for pipe in (out, err, life):
            os.close(pipe)
        return order
    for pipe in (out, err, 1, 2):
        os.close(pipe)
    os.write(life, f"{pid}\n".encode())
    os.write(life, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())
    os._exit(0)


def _be(order: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    sys.argv[1:] = order["argv"]
    runpy.run_module(PROGRAM, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for name in _LOADED:
        import_module(name)
    _be(_orders(socket.socket(fileno=int(sys.argv[1]))))
