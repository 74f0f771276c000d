"""What an application changed in the `messages` channel of what had been said before.

The transcript is never rewritten. An edit is an entry of a chain of its own that says which
messages are not shown any more, and what others say now; so it forks with the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic import BaseModel

from topicloom.state.messages import has_content
from topicloom.state.stored_message import (
    MARKS,
    REMOVED,
    StoredMessage,
    says_same,
    to_stored_message,
)


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


def fold_edits(edits: Iterable[Edit]) -> dict[int, StoredMessage | None]:
    """What is shown in the place of superseded messages, by number; None for nothing."""
    shown: dict[int, StoredMessage | None] = {}
    for edit in edits:
        shown |= {m.seq: m for m in edit.changed} | dict.fromkeys(edit.removed)
    return shown


def find_edit(
    messages: Sequence[AnyMessage], shown: Sequence[StoredMessage], first: int, *, answer: bool
) -> tuple[Edit, list[AnyMessage]]:
    """What was edited, and the messages without those that are out of view by it.

    A message that is gone was removed; one that has other words was changed in its place. But where
    nothing else is new to `answer`, a user's message with other words is said anew: all that
    followed upon it goes.

    Args:
        messages: The channel.
        shown: The newest messages that are in view.
        first: Number from which on the channel showed all of them; 0 if that is not known.
    """
    by_id = {m.id: m for m in messages}
    last = {m.source: m for m in shown if m.source is not None}
    gone = {m.seq for m in shown if first and m.seq >= first and m.source and m.source not in by_id}
    other = [
        (m, by_id[source])
        for source, m in last.items()
        if source in by_id and m.text != REMOVED and _differs(by_id[source], m)
    ]
    again = max((m.seq for m, _ in other if m.role == "user"), default=0)
    new = {m.id for m in messages if has_content(m) and m.id not in last}
    # What a turn called and replied, which did not end, it did for what goes.
    waits = bool(shown) and shown[-1].role == "user"
    left = {m.id for m in messages if waits and m.id in new and not isinstance(m, HumanMessage)}
    if not (answer and again) or new - left:
        again, left = 0, set()
    else:
        gone |= {m.seq for m in shown if m.seq >= again}
    edit = Edit(
        removed=tuple(sorted(gone)),
        changed=tuple(
            to_stored_message(now, seq=m.seq, time=m.time).model_copy(
                update=m.model_dump(include=MARKS)
            )
            for m, now in other
            if m.seq not in gone
        ),
        again=again,
    )
    hidden = left | {m.source for m in shown if m.seq in gone and m.seq != again}
    return edit, [m for m in messages if m.id not in hidden]


def align_ids(messages: Sequence[AnyMessage], shown: Sequence[StoredMessage]) -> list[AnyMessage]:
    """A conversation that a client sent anew, under the ids that its messages had.

    Clients that keep no ids send the same words under others; these count as the same up to the
    first that says something else.
    """
    known = {m.source for m in shown}
    aligned = list(messages)
    for place, (message, stored) in enumerate(zip(messages, shown, strict=False)):
        named = message.model_copy(update={"id": stored.source})
        if message.id in known or _differs(named, stored):
            if message.id != stored.source:
                break
            continue
        aligned[place] = named
    return aligned


def find_shown(messages: Sequence[AnyMessage], stored: Sequence[StoredMessage]) -> int:
    """Number of the message from which on the channel shows all that are in view; 0 for none."""
    ids, first = {m.id for m in messages}, 0
    for message in reversed(stored):
        if message.source not in ids:
            break
        first = message.seq
    return first


def removes_all(values: Any) -> bool:
    """True if an input or an update of the state removes all messages, whatever follows."""
    given = values.get("messages") if isinstance(values, Mapping) else None
    listed = given if isinstance(given, list | tuple) else [given]
    return any(
        (m.get("id") if isinstance(m, Mapping) else getattr(m, "id", None)) == REMOVE_ALL_MESSAGES
        for m in listed
    )


def _differs(message: AnyMessage, stored: StoredMessage) -> bool:
    return has_content(message) and not says_same(message, stored.message)
