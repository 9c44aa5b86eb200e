"""A simulated engine as a server: ``withstand.sim`` behind real HTTP, on the truth server's clockwork."""
