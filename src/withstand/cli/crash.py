"""A fault of our own: the traceback goes into a file, the user gets one sentence.

The command line is not written down: a header in it may be a secret.
"""

import os
import platform
import tempfile
import traceback

from withstand import __version__


def sentence(e: Exception) -> str:
    """Write the traceback to a file of its own and say where it is."""
    what = f"This is a fault of withstand itself ({type(e).__name__}: {_first_line(e)})"
    try:
        path = _write(e)
    except OSError as disk:
        return f"{what}, and its traceback cannot be kept either: {disk.strerror}."
    return f"{what}; please report it with {path}."


def _first_line(e: Exception) -> str:
    return str(e).partition("\n")[0]


def _write(e: Exception) -> str:
    descriptor, path = tempfile.mkstemp(prefix="withstand-crash-", suffix=".log")
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"withstand {__version__}, Python {platform.python_version()}, {platform.platform()}\n\n")
        file.writelines(traceback.format_exception(e))
    return path
