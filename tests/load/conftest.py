"""The fixture ``drive`` for the tests of this folder."""

from driving import drive

__all__ = ["drive"]
