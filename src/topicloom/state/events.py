"""Events of the application's document: tasks, quests, orders, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topicloom.state.document import Document

_OVER = frozenset(
    """
    done complete completed finished closed resolved cancelled canceled failed abandoned archived
    skipped rejected expired 完成 已完成 结束 已结束 关闭 已关闭 取消 已取消 失败 已失败 放弃 已放弃
    """.split()
)
"""Words for the status of an event that is over."""

Event = Mapping[str, Any]
"""An object with an `id` and mostly a `status`."""


def events_of(document: Document, key: str) -> list[Event]:
    """The events of a document, in its order.

    Args:
        document: The document.
        key: Its field that the events are listed under; other things there are passed over.
    """
    listed = document.get(key)
    return [e for e in listed if isinstance(e, dict)] if isinstance(listed, list) else []


def is_active(event: Event) -> bool:
    """Whether an event goes on: it has not ended by any word that is known for that."""
    if event.get("done") is True or event.get("completed") is True:
        return False
    status = event.get("status")
    return not (isinstance(status, str) and status.strip().lower().replace(" ", "_") in _OVER)
