"""Compiles what can be, where there is a C compiler; without one everything works, slower.

Modules in C, each of which stands in for Python beside it. And what a request passes in the gateway, which mypyc makes
of the same source: for wheels, and for an editable install where ``WITHSTAND_COMPILED=on`` asks for it, for it takes a
minute.
"""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCES = ("_huge_pages.c", "load/_receive.c", "gateway/_splice.c")
_PACKAGE = "gateway"
_MODULES = (
    "admission",
    "breaker",
    "deadlines",
    "delivery",
    "door",
    "engine",
    "familiar",
    "heads",
    "house",
    "incoming",
    "ledger",
    "link",
    "load",
    "outgoing",
    "passage",
    "reader",
    "roster",
    "stopwatch",
)
"""None that has a msgspec structure: its annotations, which a decoder reads, and its class's options would be lost."""


class BuildHook(BuildHookInterface):  # type: ignore[misc]
    """Of wheels, and of editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile."""
        if self.target_name != "wheel" or sys.platform != "linux":
            return
        package = Path(self.root, "src", "withstand")
        files: list[Path] = []
        for name in _SOURCES:
            try:
                files.append(_built(package / name))
            except (OSError, subprocess.CalledProcessError) as e:
                self._warn(name, getattr(e, "stderr", None) or str(e))
        if version != "editable" or os.environ.get("WITHSTAND_COMPILED") == "on":
            try:
                files += _translated(package)
            except (OSError, RuntimeError) as e:
                self._warn("The gateway's path", str(e))
        if files:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["artifacts"] += [str(file.relative_to(self.root)) for file in files]

    def _warn(self, what: str, why: str) -> None:
        self.app.display_warning(f"{what} was not built; Python does its work, slower. {why.strip()}")


def _built(source: Path) -> Path:
    """The library, beside its source.

    Raises:
        OSError: there is no compiler.
        CalledProcessError: it refuses.
    """
    library = source.with_name(f"{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}")
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    digest = sha256(source.read_bytes()).hexdigest()
    include = sysconfig.get_path("include")
    options = ["-O2", "-fPIC", "-shared", f"-I{include}", f'-DSOURCE="{digest}"']
    command = [*compiler, *options, str(source), "-o", f"{library}.new"]
    subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  the user's own compiler
    Path(f"{library}.new").replace(library)  # whoever runs with the old one keeps it
    return library


def _translated(root: Path) -> list[Path]:
    """The modules in a folder of their package, and the list of what they were made of, unless they are there already.

    Raises:
        OSError, RuntimeError: there is no mypyc, or no compiler, or one of them refuses.
    """
    package, compiled = root / _PACKAGE, _compiled(root)
    folder, listing = package / compiled.FOLDER, compiled.list_of_sources(package)
    now = compiled.sources(package, list(_MODULES))
    if not (listing.exists() and listing.read_text("ascii") == now):
        listing.unlink(missing_ok=True)  # from here on until all is there, there is nothing
        folder.mkdir(exist_ok=True)
        for old in _libraries(folder):
            old.unlink()
        with tempfile.TemporaryDirectory() as made:
            _translate(package, Path(made))
            for library in Path(made, "withstand", _PACKAGE).iterdir():
                shutil.move(library, folder)
        listing.write_text(now, "ascii")
    return [*_libraries(folder), listing]


def _libraries(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"))


def _translate(package: Path, made: Path) -> None:
    """Into packages in a folder."""
    program, group = Path(__file__).with_name("hatch_mypyc.py"), f"withstand.{_PACKAGE}.path"
    files = [str(package / f"{name}.py") for name in _MODULES]
    command = [sys.executable, str(program), str(made), group, *files]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, cwd=made)  # noqa: S603  ours
    if ran.returncode:
        raise RuntimeError((ran.stdout + ran.stderr)[-2000:])


def _compiled(root: Path) -> ModuleType:
    """``withstand.compiled``, which looks at run time for what is made here."""
    spec = importlib.util.spec_from_file_location("compiled", root / "compiled.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
