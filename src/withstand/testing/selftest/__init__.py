"""withstand's own client against the truth server: every behaviour, what is right, and what we say.

The client is the real one, with its worker processes, records and metrics; the truth server shares none of that.
"""
