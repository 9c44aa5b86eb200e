"""Limits, prices, budgets and usage of keys. The data plane knows of it only the ``till``."""
