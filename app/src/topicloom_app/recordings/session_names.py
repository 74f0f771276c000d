"""Which session a conversation goes into where each has one of its own: one named by its title."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from topicloom import Session, SessionStore, Storage
from topicloom.hosting import find_newest
from topicloom_app.recordings.spool import ChatInfo
from topicloom_app.session_names import make_session_name, make_titled_name

_READ_AT_ONCE = 1_000
"""Messages that are in memory at once while a session is looked through."""


class SessionNames:
    """Chooses sessions: the one that holds a conversation already, or one that is not there yet."""

    def __init__(self, storage: Storage, chats: Iterable[ChatInfo]) -> None:
        """Look for the sessions that hold some conversations.

        Args:
            storage: The sessions.
            chats: The conversations that sessions will be asked for.
        """
        names, wanted = storage.sessions(), {chat.first_source for chat in chats}
        self._taken = {name.casefold() for name in names}
        self._holding: dict[str, str] = {}
        for name in names:
            store = SessionStore(storage.open(name))
            session = find_newest(store, name)
            first = [message.source for message in store.originals(session, 1, 1)]
            if first and first[0] in wanted and not _has_several(store, session):
                self._holding.setdefault(first[0], name)

    def choose(self, chat: ChatInfo) -> str:
        """The session of a conversation: it stays the same when the title has changed since."""
        if known := self._holding.get(chat.first_source):
            return known
        named = make_titled_name(chat.name) or self._name_by_id(chat)
        endings = itertools.chain([""], (f" {n}" for n in itertools.count(2)))
        names = (named + ending for ending in endings)
        name = next(name for name in names if name.casefold() not in self._taken)
        self._taken.add(name.casefold())
        self._holding[chat.first_source] = name
        return name

    @staticmethod
    def _name_by_id(chat: ChatInfo) -> str:
        prefix = f"{chat.format}-"
        return make_session_name(chat.id if chat.id.startswith(prefix) else prefix + chat.id)


def _has_several(store: SessionStore, session: Session) -> bool:
    """True if several conversations were imported into a session."""
    starts = range(1, session.count + 1, _READ_AT_ONCE)
    parts = (store.originals(session, first, first + _READ_AT_ONCE - 1) for first in starts)
    return any(message.begins for part in parts for message in part)
