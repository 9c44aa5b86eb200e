"""Everybody's result files → runs: what a stranger's file says, under names whose definitions are known here.

Found by content, never by name. It makes facts where the file holds per-request facts, else aggregates. Units and
definitions are translated; what has another definition has another name, or is left out with the reason. It neither
prints nor judges anything but the file itself.
"""
