"""Builds the modules in C into the package, where there is a C compiler; without one everything works, slower."""

import os
import shlex
import subprocess
import sys
import sysconfig
from hashlib import sha256
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCES = ("load/_receive.c", "gateway/_splice.c")


class BuildHook(BuildHookInterface):  # type: ignore[misc]
    """Of wheels, and of editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile."""
        if self.target_name != "wheel" or sys.platform != "linux":
            return
        for name in _SOURCES:
            try:
                library = _built(Path(self.root, "src", "withstand", name))
            except (OSError, subprocess.CalledProcessError) as e:
                why = (getattr(e, "stderr", None) or str(e)).strip()
                self.app.display_warning(f"{name} was not built; Python does its work, slower. {why}")
                continue
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["artifacts"].append(str(library.relative_to(self.root)))


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
