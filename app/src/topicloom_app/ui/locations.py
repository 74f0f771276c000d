"""Where the messages of a session are, for whatever is shown beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from cachetools import LRUCache

from topicloom import Memory, StoredMessage
from topicloom.hosting import CompiledSessionGraph

MANY = 5_000
"""Messages from which on it is remembered where they are, not looked up."""
_MESSAGES = 500_000
"""Messages of whose topics it is remembered which they have, so that a change costs little."""
_MOMENTS = 4
"""Sessions, or points in time of one, of which it is remembered where messages are."""


@dataclass(frozen=True, slots=True)
class Locations:
    """Where the messages of a session are, and when they were said."""

    topics: Mapping[int, str]
    days: Mapping[int, str]


class LocationFinder:
    """Finds the topics and days of messages, and remembers those of the last sessions."""

    def __init__(self, graph: CompiledSessionGraph) -> None:
        """In the sessions of a graph."""
        self._graph = graph
        self._locations: LRUCache[tuple[str | int | None, ...], Locations] = LRUCache(_MOMENTS)
        self._messages: LRUCache[str | None, Mapping[int, str]] = LRUCache(_MESSAGES, len)
        self._lock = Lock()

    def find_topics(self, memory: Memory, said: Sequence[StoredMessage]) -> Mapping[int, str]:
        """The topics of some messages, by number: by a few topics, if these are all it can be."""
        times = sorted(message.time for message in said)
        held = [t for t in memory.topics() if t.count and times[:1] <= [t.last_at]]
        likely = [t for t in held if [t.first_at] <= times[-1:]]
        if sum(topic.count for topic in likely) > MANY:
            return self.find(memory).topics
        return {m.seq: topic.id for topic in likely for m in topic.messages()}

    def find(self, memory: Memory) -> Locations:
        """Where all messages are: of the last time, if nothing moved since."""
        session = memory.session()
        mark = session.id, session.roster, session.superseded, session.count
        with self._lock:  # several parts of a page that opens ask for it at once
            known = self._locations.get(mark)
            if known is None:
                topics, days = dict[int, str](), dict[int, str]()
                store = self._graph.builder.workspaces.open(session.id, self._graph.store).store
                for topic in (t for t in store.topic_table(session) if t.count):
                    said = self._messages.get(topic.head)
                    if said is None:
                        said = self._messages[topic.head] = store.topic_days(topic)
                    topics.update(dict.fromkeys(said, topic.id))
                    days.update(said)
                late = session.count - session.tail + 1
                days |= {m.seq: m.day for m in memory.history(limit=late)} if late else {}
                known = self._locations[mark] = Locations(topics, days)
            return known
