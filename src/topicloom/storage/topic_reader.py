"""Reading topics' messages as one session has them, for an index that keeps up with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topic_ranges import TopicRanges
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore, TopicContent


@dataclass(frozen=True, slots=True)
class TopicReader:
    """Reads the messages of the topics of a session."""

    store: SessionStore
    session: Session
    ranges: TopicRanges | None = None
    """Which topic has which messages; None for what the session says."""

    def content(self, topic: Topic) -> TopicContent:
        """Which messages a topic has."""
        return self.store.topic_content(self.session, topic, self.ranges)

    def read(self, topic: Topic, after: int = 0) -> Sequence[StoredMessage]:
        """A topic's messages behind a message; raises as `SessionStore.topic_messages` does."""
        return self.store.topic_messages(self.session, topic, after, self.ranges)

    def refs(self, messages: Sequence[StoredMessage]) -> list[str]:
        """The refs of some messages in the transcript."""
        refs = self.store.transcript_refs(self.session)
        return [refs[message.seq - 1] for message in messages]

    def has_only_gained(self, before: TopicContent, topic: Topic) -> bool:
        """True if a topic has at most gained messages at its end since it had some."""
        refs = self.store.transcript_refs(self.session)
        return before.begins(self.content(topic), refs)
