"""Exports read, and taken into a session, as the command does it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from topicloom import open_session
from topicloom.hosting import Graph
from topicloom_app.recordings.exported import ExportedConversation
from topicloom_app.recordings.exports import read_exports
from topicloom_app.recordings.imports import record_messages, select_new
from topicloom_app.recordings.spool import ImportSpool


def save(path: Path, value: Any) -> Path:
    """Write a value as JSON."""
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")
    return path


def read_one(path: Path) -> ExportedConversation:
    """The conversation of a file that holds one."""
    (conversation,) = read_exports([path])
    return conversation


def fill_spool(*paths: Path, branches: bool = False) -> ImportSpool:
    """Exports in the order of time, by the clocks of UTC."""
    spool = ImportSpool(UTC)
    for conversation in read_exports(paths, branches=branches):
        spool.add(conversation)
    return spool


def list_messages(*paths: Path, branches: bool = False) -> list[BaseMessage]:
    """The messages of exports in the order in which a session takes them in."""
    with fill_spool(*paths, branches=branches) as spool:
        return [message for piece in spool.pieces() for message in piece.messages]


def begin_import(graph: Graph, config: RunnableConfig, *paths: Path) -> Iterator[int]:
    """Take exports into a session; yields the number of messages of each turn."""
    with fill_spool(*paths) as spool:
        session, store = open_session(graph, config)
        yield from record_messages(graph, select_new(spool.pieces(), store, session), config)
