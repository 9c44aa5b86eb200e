"""The program that runs on Ray, with a stand-in for Ray: it finds the environment's own, and ends it when told to."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from withstand.stack import ray
from withstand.stack.ports import free_port

STAND_IN = {
    "ray/__init__.py": "def init(**told): print('init', told['address'], flush=True)\ndef shutdown(): print('gone')\n",
    "ray/serve/context.py": "from ray import serve\ndef _get_global_client(): return serve\n",
    "ray/serve/__init__.py": (
        "from types import SimpleNamespace as Told\n"
        "http_config = Told(port=1)\n"
        "def status(): return Told(applications={}, proxies={'node': 1})\n"
        "def start(http_options): print('port', http_options['port'])\n"
        "def run(app, name, route_prefix): print('runs', name, app, flush=True)\n"
        "def shutdown(): print('no more')\n"
        "def delete(name): print('deleted', name)\n"
    ),
    "app.py": "def build(told): return told['models']\n",
}


def ended(tmp_path: Path, address: str) -> list[str]:
    for name, text in STAND_IN.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    application = {"name": "chat", "route_prefix": "/", "import_path": "app:build", "args": {"models": 2}}
    folder = tmp_path / "ray-files"
    told = {"address": address, "host": "127.0.0.1", "port": 1, "ready_port": free_port(), "folder": str(folder)}
    told |= {"application": application}
    (tmp_path / "told.json").write_text(json.dumps(told))
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    argv = [sys.executable, str(ray._PROGRAM), str(tmp_path / "told.json")]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        lines = []
        for line in program.stdout:
            lines.append(line.strip())
            if line.startswith("runs"):
                program.send_signal(signal.SIGTERM)
    assert program.returncode == 128 + signal.SIGTERM
    assert not list(tmp_path.glob("ray-files"))
    return lines


def test_a_ray_of_its_own_ends_with_it(tmp_path: Path) -> None:
    assert ended(tmp_path, "local") == ["init local", "port 1", "runs chat 2", "no more", "gone"]


def test_on_a_cluster_only_the_application_ends(tmp_path: Path) -> None:
    assert ended(tmp_path, "auto") == ["init auto", "port 1", "runs chat 2", "deleted chat", "gone"]
