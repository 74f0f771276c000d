"""Topics that the session graph gives to interleaved talk, against those known.

A conversation is fed message by message, as `topicloom eval memory` feeds it. Its topics are told
twice. As messages come: a message of a user is in the topic that it is likeliest about, by the
search that a turn's recall goes by, and the reply is in the same one. Where no topic is likely, it
is in the topic of the message before it, or, if something begins with it, in a new one: the topic
that a split made of it later, if one began with it. After the splits moved them: each message is in
the topic that it is in at the end. A part of a topic that was divided for its size counts as that
topic. A message in no topic, or among the loose ends, counts as a topic of its own. Only messages
whose thread is known are judged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate, groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, Field

from topicloom import (
    SPLITTER,
    FileStorage,
    Roles,
    Session,
    SessionStore,
    Settings,
    TurnOptions,
    build_session_graph,
    default_embedder,
    embedded_roles,
)
from topicloom.lab import Graph, Query, SessionIndex, TopicReader, Turn, TurnContext, find_path
from topicloom_app.recordings.conversations import RecordedMessage
from topicloom_app.recordings.records import read_records
from topicloom_app.recordings.replay import as_message
from topicloom_lab.gold_splitter import GoldSplitter, SplitterKind
from topicloom_lab.known_topics import KnownSplitter, Labels
from topicloom_lab.recorded_time import RecordedClock
from topicloom_lab.thread_scores import ThreadScores, score_labelled

WINDOW = 8_000
"""Tokens of the main window, as of `topicloom eval memory`."""
_DEED = re.compile(
    r"=== ([^\s\[\]]+) (?!.*\[\S+@)(?!(?:has (?:joined|left|quit)|is now known as|is away)\b)\S"
)
"""Actions of a speaker of a channel ("=== anna shrugs"); joining and leaving are no deeds."""
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)")
_CLOSING = "…"
"""Text of the message before which everything moves into topics."""
_RECORD, _SPLIT_ALL = TurnOptions(answer=False), TurnOptions(answer=False, keep_messages=0)


class ThreadMessage(BaseModel, frozen=True, coerce_numbers_to_str=True):
    """One message of an interleaved conversation."""

    id: str
    time: float | str | None = Field(None, union_mode="left_to_right")
    """Seconds since an epoch, a clock ("03:21") or an ISO date."""
    speaker: str | None = None
    """Name or role of who said it."""
    text: str
    thread: str | None = None
    """The topic it is in; None without a label."""
    system: bool = False
    """True if the channel wrote it: a notice, or what a speaker does."""

    @property
    def voice(self) -> str | None:
        """Name or role of who said it, or who does it; None for a notice."""
        if self.speaker or not self.system:
            return self.speaker
        deed = _DEED.match(self.text)
        return deed.group(1) if deed else None


class ThreadedConversation(BaseModel, frozen=True, coerce_numbers_to_str=True):
    """A conversation whose topics are known."""

    id: str
    lang: str = "en"
    messages: tuple[ThreadMessage, ...] = Field(min_length=1)

    def recorded(self) -> list[RecordedMessage]:
        """Its messages as a recording has them, each under its place.

        Who is no assistant is a user, under a name of their own. A clock that jumps back is past
        midnight; of a clock alone the day is the first of all days.
        """
        found: list[RecordedMessage] = []
        days = 0
        before: float | None = None
        for place, message in enumerate(self.messages):
            hours = _hours(message.time)
            if hours is not None and isinstance(message.time, str):
                days += before is not None and hours < before - 12
                before = hours
                hours += 24 * days
            found.append(
                RecordedMessage(
                    id=str(place),
                    role="assistant" if _is_assistant(message.voice) else "user",
                    speaker=message.voice,
                    text=message.text,
                    time=None if hours is None else _iso(hours),
                )
            )
        return found


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """The scores of one conversation."""

    id: str
    segments: tuple[int, ...]
    """Number of the segment of each message, as it came."""
    came: tuple[str, ...]
    """The topic that each message was in, as it came: its id, or `new 3` for segment 3."""
    topics: tuple[str | None, ...]
    """Id of the topic of each message, after it was moved; None for no topic."""
    as_they_come: ThreadScores | None
    """The agreement of `came`; None where fewer than two messages are labelled."""
    moved: ThreadScores | None
    """The agreement of the topics."""

    def as_json(self) -> dict[str, Any]:
        """The row of a results file."""
        came = {"segments": self.segments, "came": self.came}
        return {"id": self.id, **came, "threads": self.topics}


def load_threads(path: Path) -> Iterator[ThreadedConversation]:
    """The interleaved conversations of a file; raises what `read_records` raises."""
    wanted = '{"id", "messages": [{"id", "text"}]}'
    return read_records(path, ThreadedConversation, "interleaved conversation", wanted)


def load_labels(path: Path) -> dict[str, Labels]:
    """The topics of the messages of a file, by conversation; raises what `load_threads` raises."""
    return {c.id: {m.id: m.thread for m in c.messages} for c in load_threads(path)}


def evaluate_threads(
    conversations: Iterable[ThreadedConversation],
    *,
    window: int = WINDOW,
    splitter: SplitterKind = "embedded",
) -> Iterator[ThreadRow]:
    """Feed conversations to a session each, with the embedded roles, and judge their topics.

    One at a time is in memory; a smaller main window, in tokens, is split earlier. A gold splitter
    shows what the session makes of right answers.
    """
    for conversation in conversations:
        with TemporaryDirectory() as folder:
            storage = FileStorage(Path(folder), fsync=False)
            roles = embedded_roles(default_embedder())
            if splitter == "gold":
                places = {str(n): m.thread for n, m in enumerate(conversation.messages)}
                known = KnownSplitter(storage, places)
                roles = roles.replace(SPLITTER, GoldSplitter(known, window))
            labels = _feed(conversation.recorded(), storage, roles, window)
        segments = tuple(label.segment for label in labels)
        came = tuple(label.came for label in labels)
        topics = tuple(label.topic for label in labels)
        gold = [message.thread for message in conversation.messages]
        scores = score_labelled(gold, came), score_labelled(gold, topics)
        yield ThreadRow(conversation.id, segments, came, topics, *scores)


@dataclass(frozen=True, slots=True)
class _Label:
    """The topic that the graph assigned a message to."""

    segment: int
    """Number of the segment, as the message came."""
    came: str
    """The topic that the message was in, as it came; see `ThreadRow.came`."""
    topic: str | None
    """Id of the topic at the end; of the whole one, where it was divided; None for no topic."""


def _feed(
    messages: Sequence[RecordedMessage], storage: FileStorage, roles: Roles, window: int
) -> list[_Label]:
    """Feed a session; returns a label for each message, without text that of the one before it."""
    clock = RecordedClock.of(messages)
    graph: Graph = build_session_graph(
        settings=Settings(window=window),
        roles=roles,
        storage=storage,
        clock=clock,
    ).compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "conversation"}}
    about = _MessageTopics(storage)
    for message in (m for m in messages if m.text.strip()):
        clock.now = clock.after([message])
        about.take_newest(*_record(graph, config, as_message(message), _RECORD))
    session, _ = _record(graph, config, HumanMessage(_CLOSING), _SPLIT_ALL)
    found = _label(SessionStore(storage.open(session.id)), session, about.likeliest)
    labels: list[_Label] = []
    for message in messages:
        silent = labels[-1] if labels else _Label(0, "", "")
        labels.append(found[message.id] if message.text.strip() else silent)
    return labels


class _MessageTopics:
    """What messages of users are about as they come, by the topics that there are then."""

    def __init__(self, storage: FileStorage) -> None:
        self._storage = storage
        self._index: SessionIndex | None = None
        self.likeliest: dict[int, str] = {}
        """The likeliest topic by the number of the message; none where none is likely."""

    def take_newest(self, session: Session, turn: Turn) -> None:
        """Take in the message that a turn recorded."""
        store = SessionStore(self._storage.open(session.id))
        (message,) = store.messages(session, turn.user, turn.user)
        if message.role != "user":
            return
        if self._index is None:
            self._index = SessionIndex(default_embedder(), store.log, WINDOW)
        self._index.update(store.topic_table(session), TopicReader(store, session))
        first, last, _ = turn.before
        read = partial(store.messages, session, first, last) if first else tuple
        context = TurnContext(turn.before, read)
        about = self._index.search(Query(message.text, context=context)).about
        if about:
            self.likeliest[turn.user] = next(iter(about))


def _record(
    graph: Graph, config: RunnableConfig, message: BaseMessage, options: TurnOptions
) -> tuple[Session, Turn]:
    """Feed a message; the session after it, and its turn."""
    state = graph.invoke({"messages": [message]}, config, context=options, durability="exit")
    return Session.model_validate(state["session"]), Turn.model_validate(state["turn"])


def _label(
    store: SessionStore, session: Session, about: Mapping[int, str]
) -> dict[str | None, _Label]:
    """The labels of all messages, by the ids that they came with."""
    stored_messages, topics = store.messages(session), store.topic_table(session).topics
    wholes = {topic.id: find_path(topic, topics)[0].id for topic in topics.values()}
    homes = {
        message.seq: wholes[topic.id]
        for topic in topics.values()
        if not topic.loose
        for message in store.topic_messages(session, topic)
    }
    first = dict[str, int]()
    for seq in sorted(homes):
        first.setdefault(homes[seq], seq)
    numbers = accumulate(int(message.opens) for message in stored_messages)
    labels: dict[str | None, _Label] = {}
    for number, group in groupby(zip(numbers, stored_messages, strict=True), lambda p: p[0]):
        segment = [message for _, message in group]
        made, _ = Counter(homes.get(m.seq, "") for m in segment).most_common(1)[0]
        came = made if first.get(made, 0) >= segment[0].seq else f"new {number}"
        for message in segment:
            came = wholes[about[message.seq]] if message.seq in about else came
            labels[message.source] = _Label(number, came, homes.get(message.seq))
    return labels


def _is_assistant(voice: str | None) -> bool:
    return voice is not None and voice.casefold() == "assistant"


def _hours(time: float | str | None) -> float | None:
    if time is None:
        return None
    if isinstance(time, float):
        return time / 3600
    if clock := _CLOCK.fullmatch(time.strip()):
        return int(clock.group(1)) + int(clock.group(2)) / 60
    try:
        return datetime.fromisoformat(time).timestamp() / 3600
    except ValueError:
        return None


def _iso(hours: float) -> str:
    return datetime.fromtimestamp(3600 * hours, UTC).isoformat()
