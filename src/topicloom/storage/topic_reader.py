"""Reading the messages of all topics as one session has them, for an index that keeps up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topic_ranges import TopicRanges
from topicloom.storage.sessions import SessionStore

HeldMessage = tuple[int, str | StoredMessage]
"""Number of a message in view, and what it says: its ref, or what it was changed to."""


@dataclass(frozen=True, slots=True)
class TopicReader:
    """Reads the messages of the topics of a session."""

    store: SessionStore
    session: Session
    other: TopicRanges | None = None
    """Which topic has which messages; None for what the session says."""

    @property
    def ranges(self) -> TopicRanges:
        """Which topic has which messages."""
        return self.other or self.store.ranges(self.session)

    def list_held(self) -> list[HeldMessage]:
        """All messages of topics that are in view, in the order of the conversation."""
        refs = self.store.transcript_refs(self.session)[: self.ranges.last]
        changed = self.store.superseded(self.session)
        shown = ((number, changed.get(number, ref)) for number, ref in enumerate(refs, 1))
        return [(number, says) for number, says in shown if says is not None]

    def read(self, numbers: Sequence[int]) -> Sequence[StoredMessage]:
        """Messages in view, by their numbers; raises as `SessionStore.topic_messages` does."""
        return list(self.store.pick(self.session, numbers).values())

    def refs(self, messages: Sequence[StoredMessage]) -> list[str]:
        """The refs of some messages in the transcript."""
        refs = self.store.transcript_refs(self.session)
        return [refs[message.seq - 1] for message in messages]
