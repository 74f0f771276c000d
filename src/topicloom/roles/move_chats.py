"""Imported chats moved into topics: each becomes one topic, and no model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from topicloom.roles.split_work import SplitWork
from topicloom.roles.splitter import name_rounds
from topicloom.search.embedder import Embedder
from topicloom.state.hierarchy import find_continuation
from topicloom.state.rounds import Round
from topicloom.state.topic_names import make_distinct
from topicloom.state.topics import Topic
from topicloom.topics.naming import NAME_LIMIT
from topicloom.topics.split_draft import SplitDraft


def move_chats(work: SplitWork, rounds: Sequence[Round]) -> list[Round]:
    """Move the rounds of imported chats into the chats' topics; returns the other rounds.

    A topic that gets too large is divided later, like any other.
    """
    draft, others, moved = work.draft, list[Round](), set[str]()
    for chat, run in groupby(rounds, key=lambda round_: round_.chat):
        if chat is None:
            others += run
            continue
        held = list(run)
        draft.give(_find_topic(draft, chat) or _open_topic(draft, chat, held, work.embedder), held)
        moved.add(chat)
    titles = {chat: t for chat, t in draft.session.titles.items() if chat not in moved}
    draft.session = draft.session.model_copy(update={"titles": titles})
    return others


def _find_topic(draft: SplitDraft, chat: str) -> Topic | None:
    """The open topic in which a chat goes on; None for a new one, or if it was archived."""
    topics = draft.topics
    opened = [topic.id for topic in topics.values() if topic.chat == chat]
    return find_continuation(opened[-1], topics) if opened else None


def _open_topic(draft: SplitDraft, chat: str, rounds: Sequence[Round], embedder: Embedder) -> Topic:
    """A topic under the title of the chat, or under a name for it that brief writers may change."""
    title = draft.session.titles.get(chat, "")
    name = title or name_rounds(rounds, embedder)
    taken = [topic.name for topic in draft.topics.values()]
    topic = draft.open(make_distinct(name, taken, NAME_LIMIT), "")
    return topic.model_copy(update={"chat": chat, "titled": bool(title)})
