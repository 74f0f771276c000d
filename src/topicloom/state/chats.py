"""Imported chats: conversations of which it is known where they begin and what they are called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel

from topicloom.state.stored_message import StoredMessage


class ImportedChat(BaseModel, frozen=True):
    """A conversation of another chat that some messages of a turn were said in."""

    id: str
    """The id of its first message, whether that comes in this turn or came before."""
    messages: tuple[str, ...]
    """The ids of its messages in this turn."""
    title: str | None = None
    """The name of the topic that it becomes; "" to name that by what was said. None if the
    conversation may have many topics: then only its beginning is known."""


def mark_chats(said: Sequence[StoredMessage], chats: Iterable[ImportedChat]) -> list[StoredMessage]:
    """New messages; those of imported chats are marked with their chat and its beginning."""
    chat_of = {id_: chat for chat in chats for id_ in chat.messages}
    return [_mark(m, chat_of[m.source]) if m.source in chat_of else m for m in said]


def _mark(message: StoredMessage, chat: ImportedChat) -> StoredMessage:
    begins = message.source == chat.id and message.seq > 1  # before the first there is nothing
    whole = None if chat.title is None else chat.id
    return message.model_copy(update={"opens": begins, "begins": begins, "chat": whole})


def list_titles(said: Iterable[StoredMessage], chats: Iterable[ImportedChat]) -> dict[str, str]:
    """The titles of the chats that some messages were said in, by the chats' ids."""
    held = {message.chat for message in said}
    return {chat.id: chat.title for chat in chats if chat.title is not None and chat.id in held}
