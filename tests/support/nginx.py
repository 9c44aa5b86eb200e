"""A real nginx as a stack runs it, in front of what a test likes."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from gateways import Client
from withstand.spec.stack import Edge
from withstand.stack.blueprint import Place
from withstand.stack.edge import edge
from withstand.stack.ports import free_port
from withstand.stack.programs import found_program
from withstand.stack.service import is_healthy

PROGRAM = found_program("nginx")


class Nginx:
    """Healthy when this returns."""

    def __init__(self, folder: Path, told: Edge, *upstreams: str, agents: tuple[str, ...] = ()) -> None:
        assert PROGRAM
        (folder / "logs").mkdir(parents=True)
        ports = {"edge": free_port(), "edge-status": free_port()}
        place = Place(
            folder=folder, python="", ports=ports, threads=2, programs={"nginx": PROGRAM}, is_root=os.geteuid() == 0
        )
        made = edge(told, place, (), upstreams, agents)
        for name, text in made.files.items():
            (folder / name).write_text(text, "utf-8")
        self.folder, self.port, self.argv, self._clients = folder, ports["edge"], made.argv, list[Client]()
        with (folder / "logs" / "edge.log").open("wb") as log:
            self.process = subprocess.Popen(made.argv, stdout=log, stderr=log)
        give_up_s = time.monotonic() + 30
        while not is_healthy(made.health_url):
            assert self.process.poll() is None, self.said
            assert time.monotonic() < give_up_s
            time.sleep(0.02)

    @property
    def said(self) -> str:
        return (self.folder / "logs" / "edge.log").read_text("utf-8")

    def client(self) -> Client:
        self._clients.append(Client(self.port))
        return self._clients[-1]

    def logged(self, count: int) -> list[dict[str, Any]]:
        """So many lines of its access log, as soon as they are there."""
        give_up_s = time.monotonic() + 30
        while len(lines := (self.folder / "logs" / "edge-access.log").read_text("utf-8").splitlines()) < count:
            assert time.monotonic() < give_up_s
            time.sleep(0.02)
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.process.terminate()
        self.process.wait(30)
