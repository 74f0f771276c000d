"""Which session a conversation goes into where each has one of its own: one named by its title."""

from __future__ import annotations

import itertools

from topicloom.recordings.spool import Chat
from topicloom.storage.base import Storage
from topicloom.storage.lines import find_newest
from topicloom.storage.names import make_session_name, make_titled_name
from topicloom.storage.sessions import SessionStore


class SessionNames:
    """Chooses sessions: the one that holds a conversation already, or one that is not there yet."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._taken = {name.casefold() for name in storage.sessions()}
        self._holding: dict[str, str] = {}
        for name in storage.sessions():
            if source := self._find_first(name):
                self._holding.setdefault(source, name)

    def choose(self, chat: Chat) -> str:
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
    def _name_by_id(chat: Chat) -> str:
        prefix = f"{chat.format}-"
        return make_session_name(chat.id if chat.id.startswith(prefix) else prefix + chat.id)

    def _find_first(self, name: str) -> str | None:
        """The id of the first message of a session; None if it holds several conversations."""
        store = SessionStore(self._storage.open(name))
        session = find_newest(store, name)
        first = store.originals(session, 1, 1)
        if not first or any(m.begins for m in store.originals(session)):
            return None
        return first[0].source
