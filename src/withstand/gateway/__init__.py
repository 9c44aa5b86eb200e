"""The OpenAI-compatible gateway: a program of its own, which the measuring side starts and never imports.

Two planes in one process. ``door`` parses requests; those for an engine become a ``passage``, whose answer a ``link``
writes to the client as it came; all others go through ``control`` to FastAPI.
"""
