"""The control plane: FastAPI, for everything that is not a token's way."""
