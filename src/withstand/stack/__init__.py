"""Stands up what is measured. For now: the embedded engine, a real small model on a bare laptop."""

from withstand.stack.llamacpp import EngineInfo, embedded_engine

__all__ = ["EngineInfo", "embedded_engine"]
