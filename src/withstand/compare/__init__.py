"""One measurement against another: differences, how sure they are, and what can be said at all. Pure."""
