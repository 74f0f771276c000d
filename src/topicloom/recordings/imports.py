"""Imports: the conversations of an export are recorded in a session and moved into topics."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from topicloom.graph.stored import Graph
from topicloom.recordings.exports import ExportedConversation
from topicloom.state.channels import TurnOptions, make_storable
from topicloom.state.chats import ImportedChat
from topicloom.state.session import Session
from topicloom.state.stored_message import REMOVED, make_message_key
from topicloom.storage.message_rows import is_left_of
from topicloom.storage.sessions import SessionStore

_AT_ONCE = 24
"""Messages of a turn from which on the next one begins: where an import is ended, so many at most
are taken in once more, and nothing is stored twice by it."""

ChatMessage = tuple[BaseMessage, ImportedChat]
"""A message, and the conversation that it was said in."""


def select_new(
    conversations: Iterable[ExportedConversation], store: SessionStore, session: Session
) -> list[ChatMessage]:
    """The messages of an export that a session does not have: with their id and text.

    One whose id another message has, as counted ids are alike in every file, gets a longer one. One
    that was removed for good does not come back.
    """
    stored, refs = store.originals(session), store.transcript_refs(session)
    ids, keys = {m.source for m in stored}, {make_message_key(m.message) for m in stored}
    chats = {m.source: m.chat or m.source for m in stored}
    gone: dict[str | None, list[Callable[[BaseMessage], bool]]] = {}
    for message, prev, ref in zip(stored, (None, *refs), refs, strict=False):
        if message.text == REMOVED:
            gone.setdefault(message.source, []).append(partial(is_left_of, message, prev, ref))

    def select(conversation: ExportedConversation) -> Iterator[ChatMessage]:
        known: str | None = None
        for given in conversation.messages:
            message = make_storable(given)
            if any(is_it(message) for is_it in gone.get(message.id, ())):
                known = known or chats.get(message.id)
                continue
            key = make_message_key(message)
            if message.id in ids and key not in keys:
                told = hashlib.sha256(key.encode()).hexdigest()[:8]
                message = message.model_copy(update={"id": f"{message.id}-{told}"})
            known = known or chats.get(message.id) or message.id
            if message.id not in ids and known is not None:
                chats[message.id] = known
                yield message, ImportedChat(id=known, messages=(), title=conversation.title)
            ids.add(message.id)
            keys.add(key)

    return [new for conversation in conversations for new in select(conversation)]


def record_messages(
    graph: Graph, messages: Sequence[ChatMessage], config: RunnableConfig
) -> Iterator[int]:
    """Have a session take messages in, whole rounds at a time; yields how many.

    The last turn takes the newest round in and moves all that was imported into topics. Where that
    failed and nothing is new any more, it is done now.
    """
    if not messages:
        _end_failed(graph, config)
    newest = max((n for n, (m, _) in enumerate(messages) if _is_asked(m)), default=0)
    batch: list[ChatMessage] = []
    for number, (message, chat) in enumerate(messages):
        full = len(batch) >= _AT_ONCE and _is_asked(message)
        if batch and (full or number == newest):
            yield _record(graph, batch, config)
            batch = []
        batch.append((message, chat))
    if batch:
        yield _record(graph, batch, config, keep_messages=0)


def _end_failed(graph: Graph, config: RunnableConfig) -> None:
    """Go on with a turn that only records, if the newest one is such a turn and failed."""
    state = graph.get_state(config)
    if state.next and (state.values.get("turn") or {}).get("answer") is False:
        graph.invoke(None, config, context=_END, durability="exit")


_END = TurnOptions(answer=False, keep_messages=0)


def _is_asked(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage)


def _record(
    graph: Graph,
    batch: Sequence[ChatMessage],
    config: RunnableConfig,
    keep_messages: int | None = None,
) -> int:
    chats = {chat.id: chat for _, chat in batch}
    said = {id_: tuple(str(m.id) for m, c in batch if c.id == id_) for id_ in chats}
    options = TurnOptions(
        answer=False,
        keep_messages=keep_messages,
        chats=tuple(c.model_copy(update={"messages": said[c.id]}) for c in chats.values()),
    )
    messages = [message for message, _ in batch]
    graph.invoke({"messages": messages}, config, context=options, durability="exit")
    return len(batch)
