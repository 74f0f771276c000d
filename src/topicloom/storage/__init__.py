"""Internal: append-only chains over a narrow backend, in files or in a LangGraph store."""

from __future__ import annotations

from topicloom.storage.base import Storage
from topicloom.storage.files import FileStorage
from topicloom.storage.log import SessionLog
from topicloom.storage.stores import StoreStorage
from topicloom.storage.vectors import VectorLog

__all__ = ["FileStorage", "SessionLog", "Storage", "StoreStorage", "VectorLog"]
