"""Starts what is measured, and ends it again: the embedded engine, or a server of the user's own."""

from withstand.stack.embedded import EngineInfo, embedded_engine
from withstand.stack.progress import Progress
from withstand.stack.served import check_served, served
from withstand.stack.service import Running, Service, running

__all__ = ["EngineInfo", "Progress", "Running", "Service", "check_served", "embedded_engine", "running", "served"]
