"""Where topics live: append-only chains that checkpoints point into."""

from __future__ import annotations

from topicloom.storage.base import SessionLog, Storage, VectorLog
from topicloom.storage.files import FileStorage
from topicloom.storage.stores import StoreStorage

__all__ = ["FileStorage", "SessionLog", "Storage", "StoreStorage", "VectorLog"]
