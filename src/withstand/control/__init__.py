"""What to do next, in the light of what has been measured: when a stage may end, and which load comes after it.

Pure: records in, decisions out. It starts nothing and reads no clock, so that it is tested in virtual time.
"""
