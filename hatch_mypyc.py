"""Compiles modules by mypyc: ``python hatch_mypyc.py FOLDER GROUP FILE…``. A process of its own, for mypyc ends it.

All modules become one library, named as the group; each has another, tiny one, by which it is found.
"""

import sys

from mypyc.build import mypycify
from setuptools import Distribution

_OPTIONS = ("--config-file=", "--follow-imports=silent", "--ignore-missing-imports")


def main(folder: str, group: str, *files: str) -> None:
    """``folder`` gets the libraries, as packages have them."""
    options = [*_OPTIONS, f"--cache-dir={folder}/types"]
    modules = mypycify([*options, *files], opt_level="2", debug_level="0", target_dir=f"{folder}/c", group_name=group)
    command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
    command.build_lib, command.build_temp = folder, f"{folder}/objects"
    command.ensure_finalized()
    command.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
