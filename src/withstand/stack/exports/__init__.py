"""A stack as files for other places to run it: pure functions, one file a place."""
