"""Imports: the conversations of an export are recorded in a session and moved into topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from topicloom import ImportedChat, Session, SessionStore, TurnOptions, get_session, open_session
from topicloom.hosting import Graph, is_left_of
from topicloom_app.recordings.imported_ids import ImportedIds
from topicloom_app.recordings.spool import ChatPiece

_AT_ONCE = 24
"""Messages of a turn from which on the next one begins: where an import is ended, so many at most
are taken in once more, and nothing is stored twice by it."""

ChatMessage = tuple[BaseMessage, ImportedChat]
"""A message, and the conversation that it was said in."""


_READ_AT_ONCE = 1_000
"""Messages of a session that are in memory at once while it is found out what it has."""


def select_new(
    pieces: Iterable[ChatPiece], store: SessionStore, session: Session
) -> Iterator[ChatMessage]:
    """The messages of exports that a session does not have yet, by id and text.

    If another message has the id, as with exports that count, the new one gets a longer id. A
    message that was removed for good does not come back.
    """
    held = _hold_all(store, session)
    chats = dict[int, str]()  # the id by which the session knows a conversation
    last: int | None = None
    for chat, messages in pieces:
        if chat.known:
            chats[chat.number] = held.chats.get(chat.known) or chat.known
        elif chat.title is None and last != chat.number:
            chats.pop(chat.number, None)  # what comes between ends what was talked about
        last = chat.number
        for message in messages:
            named = held.name(message)
            known = chats.get(chat.number) or held.chats.get((named or message).id)
            if named is not None:
                known = known or named.id
            if known is None:
                continue
            chats[chat.number] = known
            if named is not None and held.take(named, known):
                yield named, ImportedChat(id=known, messages=(), title=chat.title)


def _hold_all(store: SessionStore, session: Session) -> ImportedIds:
    """What a session holds, read in parts."""
    held, refs = ImportedIds(), store.transcript_refs(session)
    for first in range(1, len(refs) + 1, _READ_AT_ONCE):
        part = store.originals(session, first, first + _READ_AT_ONCE - 1)
        for place, message in enumerate(part, first - 1):
            prev = refs[place - 1] if place else None
            held.hold(message, partial(is_left_of, message, prev, refs[place]))
    return held


def record_messages(
    graph: Graph, messages: Iterable[ChatMessage], config: RunnableConfig
) -> Iterator[int]:
    """Record messages in a session, whole rounds at a time; yields how many.

    The last turn records the newest round and moves everything that was imported into topics. If
    that failed before and there is nothing new, it is done now.
    """
    batch, newest = list[ChatMessage](), list[ChatMessage]()
    for message in messages:
        if isinstance(message[0], HumanMessage) and newest:
            batch += newest
            newest = []
            if len(batch) >= _AT_ONCE:
                yield _record(graph, batch, config)
                batch = []
        newest.append(message)
    if batch:
        yield _record(graph, batch, config)
    if newest:
        yield _record(graph, newest, config, keep_messages=0)
    else:
        _end_failed(graph, config)


def _end_failed(graph: Graph, config: RunnableConfig) -> None:
    """Continue the newest turn if it only records and has failed.

    A turn that was killed after everything was stored left no checkpoint. Then a turn without a
    message takes over what it did.
    """
    state = graph.get_state(config)
    if state.next and (state.values.get("turn") or {}).get("answer") is False:
        graph.invoke(None, config, context=_END, durability="exit")
    elif open_session(graph, config)[0].count > get_session(graph, config).count:
        graph.invoke({"messages": []}, config, context=_END, durability="exit")


_END = TurnOptions(answer=False, keep_messages=0)


def _record(
    graph: Graph,
    batch: Sequence[ChatMessage],
    config: RunnableConfig,
    keep_messages: int | None = None,
) -> int:
    chats = {(chat.id, chat.title): chat for _, chat in batch}
    said = {key: tuple(str(m.id) for m, c in batch if (c.id, c.title) == key) for key in chats}
    options = TurnOptions(
        answer=False,
        keep_messages=keep_messages,
        chats=tuple(c.model_copy(update={"messages": said[k]}) for k, c in chats.items()),
    )
    messages = [message for message, _ in batch]
    graph.invoke({"messages": messages}, config, context=options, durability="exit")
    return len(batch)
