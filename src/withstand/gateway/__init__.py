"""The OpenAI-compatible gateway: a program of its own, which the measuring side starts and never imports.

Two planes in one process. ``door`` parses requests; those for an engine become a ``passage``, whose answer a ``link``
writes to the client as it came; all others go through ``control`` to FastAPI.

What a request passes may have been compiled when withstand was installed (``hatch_build.py``); it is the same source.
``WITHSTAND_COMPILED=off`` asks for the interpreter.
"""

from withstand.compiled import folder_of_compiled

_folder = folder_of_compiled(__file__)
IS_COMPILED = _folder is not None
if _folder is not None:
    __path__.insert(0, _folder)
