"""Reflection: which session is due, and running it beside the turns."""

from topicloom.scheduling.background import in_background
from topicloom.scheduling.beside import Once, reflect_beside, reflect_once
from topicloom.scheduling.reflect import Reflecting, Reflection
from topicloom.scheduling.scheduler import ReflectionScheduler, Report, Sessions
from topicloom.scheduling.sessions import StoredSessions

__all__ = [
    "Once",
    "Reflecting",
    "Reflection",
    "ReflectionScheduler",
    "Report",
    "Sessions",
    "StoredSessions",
    "in_background",
    "reflect_beside",
    "reflect_once",
]
