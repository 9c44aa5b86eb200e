"""What may be concluded from a result, ours or anybody's: its doubts, put together claim by claim, and one headline.

The doubts themselves are raised where the numbers are known (``metrics.rules``, ``interop.checks``); here it is decided
which claims each of them takes away. Pure: it reads no files and prints nothing.
"""
