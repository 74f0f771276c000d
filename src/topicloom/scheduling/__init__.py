"""Reflection: which session is due, and running it beside the turns."""

from topicloom.scheduling.beside import reflect_beside
from topicloom.scheduling.reflect import Reflecting, Reflection
from topicloom.scheduling.scheduler import ReflectionScheduler, Report, Sessions
from topicloom.scheduling.sessions import StoredSessions

__all__ = [
    "Reflecting",
    "Reflection",
    "ReflectionScheduler",
    "Report",
    "Sessions",
    "StoredSessions",
    "reflect_beside",
]
