"""What may be concluded from a result, ours or anybody's: its doubts, put together claim by claim, and one headline.

The doubts themselves are raised where the numbers are known (``metrics.rules``, ``interop.checks``), and what each
takes away stands in ``metrics.reach``; here claims, runs and files are judged by it. Pure: it reads no files and prints
nothing.
"""
