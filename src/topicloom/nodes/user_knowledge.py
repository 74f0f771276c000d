"""What is known of the user of a session, as the nodes ask for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from langgraph.store.base import BaseStore

from topicloom.search.time_expressions import Days
from topicloom.state.changes import BriefUpdate
from topicloom.state.facts import KnownFact
from topicloom.state.session import Session
from topicloom.state.thread_quotes import ThreadQuote
from topicloom.storage.sessions import SessionStore


class UserKnowledge(Protocol):
    """What is kept of a user in the graph's store, and what the user's other threads say.

    `graph/user_knowledge.py` has it: it stands above the nodes, on reflection.
    """

    def facts(
        self, kept: BaseStore, store: SessionStore, session: Session
    ) -> Mapping[str, KnownFact]:
        """The facts that hold now, by key, what was said last behind the rest."""
        ...

    def briefs(self, kept: BaseStore, session: Session) -> Iterable[BriefUpdate]:
        """Briefs of the session that reflection wrote and left in the store."""
        ...

    def find_facts(
        self,
        kept: BaseStore,
        store: SessionStore,
        session: Session,
        query: str,
        shown: Sequence[ThreadQuote],
    ) -> list[ThreadQuote]:
        """The facts that a note has to say, without those that are `shown`."""
        ...

    def find_messages(
        self,
        kept: BaseStore,
        session: Session,
        query: str,
        days: Days | None,
        shown: Sequence[ThreadQuote],
    ) -> list[ThreadQuote]:
        """The messages of other threads that fit a query, without those that are `shown`."""
        ...

    def read(
        self,
        kept: BaseStore,
        store: SessionStore,
        session: Session,
        quotes: Sequence[ThreadQuote],
    ) -> dict[ThreadQuote, str]:
        """What quotes say now; nothing of what is gone, or not to be seen any more."""
        ...

    def share(self, kept: BaseStore, store: SessionStore, session: Session) -> None:
        """Have the user's other threads find what the session says now."""
        ...
