"""Which messages of an export does a session hold already?"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from langchain_core.messages import BaseMessage

from topicloom import StoredMessage
from topicloom.hosting import REMOVED, make_message_key


class ImportedIds:
    """What a session has already: ids, digests of what messages say, and their chats.

    Some exports count their ids, so ids are alike in every file. A message whose id stands for
    other words gets a longer id, and only the very message that was purged stays away.
    """

    def __init__(self) -> None:
        self.chats: dict[str | None, str | None] = {}
        self._keys: set[bytes] = set()
        self._gone: dict[str | None, list[Callable[[BaseMessage], bool]]] = {}

    def hold(self, stored: StoredMessage, is_left_of: Callable[[BaseMessage], bool]) -> None:
        """Hold a stored message; `is_left_of` says what it was before it was purged."""
        self._add(stored.message, stored.chat or stored.source)
        if stored.text == REMOVED:
            self._gone.setdefault(stored.source, []).append(is_left_of)

    def name(self, message: BaseMessage) -> BaseMessage | None:
        """The message under an id that no other message has; None if it was purged."""
        if any(is_it(message) for is_it in self._gone.get(message.id, ())):
            return None
        key = _digest_key(message)
        if message.id not in self.chats or key in self._keys:
            return message
        return message.model_copy(update={"id": f"{message.id}-{key.hex()[:8]}"})

    def take(self, message: BaseMessage, chat: str) -> bool:
        """Hold one more; False if it is held."""
        if message.id in self.chats:
            return False
        self._add(message, chat)
        return True

    def _add(self, message: BaseMessage, chat: str | None) -> None:
        self.chats[message.id] = chat
        self._keys.add(_digest_key(message))


def _digest_key(message: BaseMessage) -> bytes:
    return hashlib.sha256(make_message_key(message).encode()).digest()[:16]
