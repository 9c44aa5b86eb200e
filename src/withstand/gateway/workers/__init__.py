"""Several processes that serve as one gateway: one address, one view of the load, one administration."""
