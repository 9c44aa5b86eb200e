"""withstand: what an LLM serving stack really holds up under, with numbers that can be defended."""

__version__ = "0.1.0"
