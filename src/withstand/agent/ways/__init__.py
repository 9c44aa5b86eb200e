"""How a model is asked so that it can call tools, and how its stream is read."""
