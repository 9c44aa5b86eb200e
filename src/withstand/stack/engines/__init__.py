"""Engines that a stack may have: one file a kind, each with its own words for what all have in common."""
