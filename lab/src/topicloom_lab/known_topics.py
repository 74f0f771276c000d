"""Topics on trial: a splitter that knows the topic of each message, or has one topic for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from topicloom import (
    Answer,
    Assignment,
    ConfigurationError,
    LocalRole,
    Round,
    Session,
    SessionStore,
    SplitRequest,
    Storage,
    StoredMessage,
)
from topicloom_app.recordings.conversations import Conversation

TopicKind = Literal["own", "gold", "none"]
"""Topics of a session: its own, those of a threads file, or one for all messages."""

Labels = Mapping[str, str | None]
"""The topic of each message, None for one in no topic, by its id in the recording."""

ONE = "conversation"
"""Name of the topic that holds all messages where there are no topics."""


def find_labels(labels: Mapping[str, Labels], conversation: Conversation) -> Labels:
    """The labels of a conversation.

    Raises:
        ConfigurationError: If they are not known for all of its messages.
    """
    found = labels.get(conversation.id)
    if found is None:
        raise ConfigurationError(
            "the threads file knows no conversation {conversation!r}: give the one that belongs to"
            " these conversations with --threads",
            conversation=conversation.id,
        )
    said = (m.id for m in conversation.messages if m.text.strip())
    if (missing := next((i for i in said if i not in found), None)) is not None:
        raise ConfigurationError(
            "the threads file knows no message {missing!r} of {conversation!r}: give the one that"
            " belongs to these conversations with --threads",
            missing=missing,
            conversation=conversation.id,
        )
    return found


def open_unfinished(storage: Storage, name: str) -> tuple[SessionStore, Session]:
    """A session without forks as it is in the middle of a turn: its messages, and their topics."""
    store = SessionStore(storage.open(name))
    chains = "transcript", "ranges"
    heads = {c: next(reversed(list(store.log.entries(c))), None) for c in chains}
    count = len(store.log.refs("transcript", heads["transcript"]))
    return store, Session(id=name, count=count, **heads)


class KnownSplitter(LocalRole[SplitRequest, tuple[Assignment, ...]]):
    """Assigns rounds to the topics that they are known to be in.

    A round in no topic becomes a topic of its own. A topic is known by what it holds, not by its
    name, which the brief may change.
    """

    def __init__(self, storage: Storage, labels: Labels | None) -> None:
        """A splitter for sessions in a storage; without labels all is one topic."""
        self._storage, self._labels = storage, labels

    def call(self, request: SplitRequest) -> Answer[tuple[Assignment, ...]]:
        """Assign every message of the request; see `Splitter`."""
        known = self._find_topics(request)
        return Answer(
            tuple(
                Assignment(message=message, topic=known.get(label), name=label)
                for round_ in request.rounds
                for label in [self._label(round_)]
                for message in round_.ids
            )
        )

    def _label(self, round_: Round) -> str:
        if self._labels is None:
            return ONE
        return self._find_label(round_.messages) or f"round {round_.first}"

    def _find_label(self, messages: Iterable[StoredMessage]) -> str | None:
        """The first label that one of the messages has."""
        assert self._labels is not None
        found = (self._labels.get(m.source) for m in messages if m.source is not None)
        return next(filter(None, found), None)

    def _find_topics(self, request: SplitRequest) -> dict[str, str]:
        """Ids of topics by label; of several parts of a topic, the one that was added to last."""
        if request.dividing:
            return {}  # these are parts in the making, which hold nothing yet
        if self._labels is None:
            return {ONE: request.topics[-1].id} if request.topics else {}
        store, session = open_unfinished(self._storage, request.session)
        held = sorted(request.topics, key=lambda topic: topic.newest)
        labels = ((self._find_label(store.topic_messages(session, t)), t.id) for t in held)
        return {label: topic for label, topic in labels if label is not None}
