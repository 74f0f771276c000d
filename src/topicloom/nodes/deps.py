"""The collaborators that the nodes of a session close over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from langgraph.store.base import BaseStore

from topicloom.background import DaemonWorker
from topicloom.context.prefix import PrefixMeter
from topicloom.context.window import MainWindow
from topicloom.context.windows import PromptWindow
from topicloom.nodes.workspace import Workspaces
from topicloom.prompts.loader import Cues
from topicloom.roles.reader import READER
from topicloom.roles.registry import Roles
from topicloom.roles.waits import Waits
from topicloom.search.embedder import Embedder
from topicloom.search.time_expressions import Days
from topicloom.settings import Settings
from topicloom.state.changes import BriefUpdate
from topicloom.state.facts import KnownFact
from topicloom.state.language import Language
from topicloom.state.session import Session
from topicloom.state.thread_quotes import ThreadQuote
from topicloom.storage.sessions import SessionStore
from topicloom.topics.adsorber import Adsorber


class OtherThreadsSource(Protocol):
    """Finds and reads what the other threads of a user know; `graph/other_threads.py` has it."""

    def find_facts(
        self,
        kept: BaseStore,
        store: SessionStore,
        session: Session,
        query: str,
        shown: Sequence[ThreadQuote],
        now: datetime,
        *,
        alone: bool = False,
    ) -> list[ThreadQuote]:
        """The facts that a note has to say."""
        ...

    def find_messages(
        self,
        kept: BaseStore,
        session: Session,
        query: str,
        days: Days | None,
        shown: Sequence[ThreadQuote],
    ) -> list[ThreadQuote]:
        """The messages of other threads that fit a query."""
        ...

    def read(
        self,
        kept: BaseStore,
        store: SessionStore,
        session: Session,
        quotes: Sequence[ThreadQuote],
        *,
        alone: bool = False,
    ) -> dict[ThreadQuote, str]:
        """What quotes say now, as far as they may be seen."""
        ...

    def update_profile(self, kept: BaseStore, session: Session) -> None:
        """Have the user's other threads find what a thread says now."""
        ...


@dataclass(frozen=True, slots=True)
class Deps:
    """The collaborators of a session graph, made once; each node takes them from here."""

    settings: Settings
    roles: Roles
    window: MainWindow
    embedder: Embedder
    workspaces: Workspaces
    """Storage and index of each session of this process."""
    adsorber: Adsorber
    """Finds where topics begin."""
    amnesia: Cues
    """Phrases by which the user says that something was forgotten."""
    meter: PrefixMeter
    new_briefs: Callable[[BaseStore, str], Iterable[BriefUpdate]]
    """Briefs of a session that were written outside the graph and left in its store."""
    known_facts: Callable[[BaseStore, str], Mapping[str, KnownFact]]
    """The facts that are kept there of the user, by key, the newest last."""
    person_facts: Callable[[BaseStore, SessionStore, Session, float], Mapping[str, KnownFact]]
    """The same in a thread that belongs to a user: what holds at a time, in seconds since the
    epoch, of all that the thread may see."""
    share_facts: Callable[[BaseStore, SessionStore, Session], None]
    """Shows what a thread knows of its user to the user's others."""
    others: OtherThreadsSource
    """What the user's other threads know."""
    clock: Callable[[], datetime]
    """Now, in the session's time zone; dates what carries no time of its own."""
    waits: Waits
    """What each session of this process has waited for in its turn, and which roles rest."""
    ahead: DaemonWorker = field(default_factory=lambda: DaemonWorker("topicloom-ahead"))
    """Embeds what later turns will ask for, those of one turn after those of another."""

    @property
    def language(self) -> Language | None:
        """The language of all sessions; None if each follows its conversation."""
        return None if self.settings.language == "auto" else self.settings.language

    @property
    def reader_window(self) -> PromptWindow:
        """What topics are read in and measured by, by the main model's counter if by no model."""
        own = getattr(self.roles.get(READER), "prompt_window", None)
        size, window = self.settings.topic_window, self.window
        return own or PromptWindow.of(size, window.counter, window.prompts)

    @property
    def topic_tokens(self) -> int:
        """Tokens that a topic's messages may come to; past it it is divided into sub-topics."""
        return round(self.settings.topic_share * self.reader_window.topic_room())
