"""What an application changed in the `messages` channel of what had been said before.

The transcript is never rewritten. An edit is an entry of a chain of its own that says which
messages are not shown any more, and what others say now; so it forks with the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal

from langchain_core.messages import AnyMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic import BaseModel

from topicloom.state.stored_message import StoredMessage

OnEdit = Literal["hide", "purge", "ignore"]
"""What happens to a message that the application removes or changes in the channel."""


class Edit(BaseModel, frozen=True):
    """One edit of what was said."""

    removed: tuple[int, ...] = ()
    """Numbers of messages that are not shown any more."""
    changed: tuple[StoredMessage, ...] = ()
    """Messages as they are shown in their places from now on."""
    again: int = 0
    """Number of the message that is said anew, in other words, behind all others; 0 for none."""

    @property
    def numbers(self) -> frozenset[int]:
        """Numbers of the messages whose originals are superseded."""
        return frozenset((*self.removed, *(m.seq for m in self.changed)))

    def renumber(self, numbers: Mapping[int, int]) -> Edit:
        """The edit, where the messages have other numbers; of those that have any."""
        return Edit(
            removed=tuple(numbers[n] for n in self.removed if n in numbers),
            changed=tuple(
                m.model_copy(update={"seq": numbers[m.seq]})
                for m in self.changed
                if m.seq in numbers
            ),
        )

    def describe(self) -> tuple[str, ...]:
        """What happened, in words for the receipt."""
        changed = ", ".join(m.id for m in self.changed)
        removed = ", ".join(f"m{n}" for n in self.removed)
        said = f"m{self.again} was said anew, and" if self.again else "edited by the application:"
        return (
            *((f"edited by the application: {changed} changed",) if changed else ()),
            *((f"{said} out of view: {removed}",) if removed else ()),
        )


NO_EDIT = Edit()
"""What changes nothing."""


def fold_edits(edits: Iterable[Edit]) -> dict[int, StoredMessage | None]:
    """What is shown in the place of superseded messages, by number; None for nothing."""
    shown: dict[int, StoredMessage | None] = {}
    for edit in edits:
        shown |= {m.seq: m for m in edit.changed} | dict.fromkeys(edit.removed)
    return shown


def find_shown(messages: Sequence[AnyMessage], stored: Sequence[StoredMessage]) -> int:
    """Number of the message from which on the channel shows all that are in view; 0 for none."""
    ids = {m.id for m in messages}
    shown = list(takewhile(lambda m: m.source in ids, reversed(stored)))
    return shown[-1].seq if shown else 0


def removes_all(values: Any) -> bool:
    """True if an input or an update of the state removes all messages, whatever follows."""
    given = values.get("messages") if isinstance(values, Mapping) else None
    listed = given if isinstance(given, list | tuple) else [given]
    return any(
        (m.get("id") if isinstance(m, Mapping) else getattr(m, "id", None)) == REMOVE_ALL_MESSAGES
        for m in listed
    )
