"""Starts what is measured, and ends it again: for now the embedded engine."""

from withstand.stack.embedded import EngineInfo, embedded_engine
from withstand.stack.progress import Progress
from withstand.stack.service import Running, Service, running

__all__ = ["EngineInfo", "Progress", "Running", "Service", "embedded_engine", "running"]
