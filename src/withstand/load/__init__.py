"""SEND and STAMP: a small event loop of our own over sockets, and the processes that it runs in."""
