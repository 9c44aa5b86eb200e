"""Engines that the gateway starts itself: at the first request, stopped when idle, in turn where not all fit.

``process`` is one engine's command and what becomes of it; ``residence`` says purely who may stay, come and go;
``host`` looks from time to time at who is wanted and has it so; ``orphans`` ends what an earlier gateway left.
"""
