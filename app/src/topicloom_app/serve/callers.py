"""Who asks for memory over HTTP, and which threads are there for that one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.exceptions import HTTPException

from topicloom import Memory, PersonMemory, Session
from topicloom.hosting import find_storage, name_thread
from topicloom_app.serve.conversations import Conversations
from topicloom_app.serve.memory_values import Thread, show_thread
from topicloom_app.serve.requests import name_session, own


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the owner of a key, and the user that it speaks for. No other's threads are there
    for it."""

    conversations: Conversations
    owner: str
    user: str
    """"" for a thread of nobody."""
    scope: str

    async def open(self, thread: str) -> tuple[Memory, str]:
        """The memory of a thread, and the name of its session.

        A thread has the name that its client gave the chat, and that of its session.

        Raises:
            HTTPException: It is not there, or somebody else's.
        """
        named = [name_session(thread, self.owner, self.user, self.scope)]
        named += [thread] if thread.startswith(own("", self.owner)) else []
        for session in dict.fromkeys(named):
            memory, _, mine = await self._read(session)
            if mine:
                return memory, session
        raise HTTPException(404, f"there is no thread {thread!r} here")

    async def list_threads(self, after: str, limit: int) -> list[Thread]:
        """The threads behind one in the order of their names."""
        storage, found = find_storage(self.conversations.graph), list[Thread]()
        for name in await asyncio.to_thread(storage.sessions):
            if name.startswith(own("", self.owner)) and name > after:
                _, session, mine = await self._read(name)
                found += [show_thread(session)] if mine else []
            if len(found) == limit:
                break
        return found

    async def _read(self, name: str) -> tuple[Memory, Session, bool]:
        """A session with its memory; True if there is one, and it is the caller's."""
        author = self.user or self.owner or "user"
        memory = Memory.of(self.conversations.graph, name_thread(name), author=author)
        session = await memory.asession()
        person = session.user_id, session.scope
        return memory, session, session.count > 0 and person == (self.user, self.scope)

    @property
    def person(self) -> PersonMemory:
        """Everything of the user; raises `InputError` if the request names none."""
        return PersonMemory(self.conversations.graph, self.user)
