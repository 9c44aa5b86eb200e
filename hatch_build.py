"""Builds the compiled reader into the package, where there is a C compiler; without one everything works, slower."""

import os
import shlex
import subprocess
import sys
import sysconfig
from hashlib import sha256
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCE = Path("src/withstand/load/_receive.c")


class BuildHook(BuildHookInterface):  # type: ignore[misc]
    """Of wheels, and of editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile."""
        if self.target_name != "wheel" or sys.platform != "linux":
            return
        source = Path(self.root) / _SOURCE
        library = source.with_name(f"_receive{sysconfig.get_config_var('EXT_SUFFIX')}")
        compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
        digest = sha256(source.read_bytes()).hexdigest()
        include = sysconfig.get_path("include")
        options = ["-O2", "-fPIC", "-shared", f"-I{include}", f'-DSOURCE="{digest}"']
        command = [*compiler, *options, str(source), "-o", f"{library}.new"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  the user's own compiler
        except (OSError, subprocess.CalledProcessError) as e:
            why = (getattr(e, "stderr", None) or str(e)).strip()
            self.app.display_warning(f"The compiled reader was not built; withstand reads in Python. {why}")
            return
        Path(f"{library}.new").replace(library)  # whoever runs with the old one keeps it
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(str(library.relative_to(self.root)))
