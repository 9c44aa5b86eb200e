"""The use cases as plain, synchronous functions: they start processes, wait, judge, and write what came out."""
