"""The fleet on many machines: workers as children of Ray actors, spread over the nodes of a cluster.

Four processes stand behind one another, and each knows its neighbours only:

    the run ──lines──▶ bridge ──Ray──▶ hand (an actor on a node) ──lines──▶ worker (the same as on one machine)

Ray lives in the bridge and in the hands, never in the run and never in the loop that stamps.
"""
