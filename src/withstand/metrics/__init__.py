"""Facts → numbers, and doubts about them. Pure functions."""
