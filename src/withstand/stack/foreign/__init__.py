"""Programs that run in others' environments, alone in a folder: that is on their path, and would shadow modules."""
