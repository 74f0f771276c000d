"""A session to review, with roles that say what a test tells them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from langchain_core.vectorstores import VectorStore
from langgraph.checkpoint.memory import InMemorySaver
from sessions import Prepared, check_kept, kept, past, record, tell, thread

from topicloom import (
    MERGER,
    REVIEWER,
    Answer,
    Assessment,
    LocalRole,
    MergeRequest,
    ReviewReport,
    ReviewRequest,
    Roles,
    Session,
    SessionStore,
    Settings,
    StoredMessage,
    build_session_graph,
    get_session,
    review_session,
)
from topicloom.hosting import Graph, TopicTable
from topicloom.testing import Clock, NameRouter, ScriptedResponder, fake_roles

CONFIG = thread()
AWAKE = {"floor": 0, "usual": 2, "ceiling": 2}


@dataclass
class Reviewer(LocalRole[ReviewRequest, Assessment]):
    """Rates topics by name, as told."""

    importance: dict[str, float] = field(default_factory=dict)
    once: tuple[str, ...] = ()
    requests: list[ReviewRequest] = field(default_factory=list)

    def call(self, request: ReviewRequest) -> Answer[Assessment]:
        self.requests.append(request)
        name, count = request.topic.name, len(request.messages)
        return Answer(
            Assessment(
                name=name,
                brief=f"{name}, {count} in brief",
                summary=f"{name}, {count} summed up",
                importance=self.importance.get(name, 0.9),
                once=name in self.once,
            )
        )


@dataclass
class Merger(LocalRole[MergeRequest, float]):
    """Says of some names that they are the same."""

    same: frozenset[str] = frozenset()
    everything: bool = False
    asked: list[set[str]] = field(default_factory=list)
    likeness: list[float] = field(default_factory=list)
    """Of the pairs that it was asked about, the most alike first."""

    def call(self, request: MergeRequest) -> Answer[float]:
        names = {t.name for t in request.topics}
        self.asked.append(names)
        self.likeness = sorted([*self.likeness, request.likeness], reverse=True)
        return Answer(float(self.everything or names == self.same))


@dataclass
class World:
    """A session of four topics, two of them active, with all that a review needs."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    checkpointer: InMemorySaver = field(default_factory=InMemorySaver)
    reviewer: Any = field(default_factory=lambda: Reviewer(importance={"茶": 0.1}))
    merger: Any = field(default_factory=Merger)
    responder: ScriptedResponder = field(default_factory=ScriptedResponder)
    router: NameRouter = field(default_factory=lambda: NameRouter({"茶": 0.9}))
    settings: dict[str, Any] = field(default_factory=dict)
    index: VectorStore | None = None
    """Where archived topics are handed over to."""
    awake: dict[str, int] = field(default_factory=lambda: AWAKE)
    """How many topics are active."""
    seconds: float = 60.0
    """Deadline of roles in turns."""
    embedder: Any = None

    @property
    def roles(self) -> Roles:
        roles = fake_roles(self.responder, router=self.router)
        return roles.replace(REVIEWER, self.reviewer).replace(MERGER, self.merger)

    @property
    def graph(self) -> Graph:
        return build_session_graph(
            settings=Settings.model_validate(
                {
                    "folder": self.folder,
                    "window": 2_000,
                    "recall_tokens": 500,
                    "fsync": False,
                    "activation": self.awake,
                    "role_seconds": self.seconds,
                    **self.settings,
                }
            ),
            roles=self.roles,
            clock=self.clock,
            archive_index=self.index,
            embedder=self.embedder,
        ).compile(checkpointer=self.checkpointer)

    def begin(self, *tags: str, days: float = 8) -> None:
        """Talk about topics, the last two of which stay awake; then let days go by.

        What was talked about once in the same way is copied.
        """
        tags = tags or ("茶", "雨", "山", "海")
        asked = (self.router.relevance, self.awake, self.settings, self.responder.script)
        key = (type(self), tags, days, self.clock.now, repr(asked))
        if self.folder.exists() or self.responder.otherwise != ScriptedResponder().otherwise:
            self._talk(tags, days)
        elif key not in _begun:
            self._talk(tags, days)
            _begun[key] = Prepared.of(self.folder, self.checkpointer), self.clock.now
        else:
            prepared, self.clock.now = _begun[key]
            self.checkpointer = prepared.copy_to(self.folder)

    def _talk(self, tags: tuple[str, ...], days: float) -> None:
        graph = self.graph
        for n in range(0, len(tags), 2):
            record(graph, CONFIG, *past(*tags[n : n + 2], rounds=3))
            tell(graph, CONFIG, f"{tags[n + 1]}：还有吗？", keep=0)
            self.clock.now += timedelta(days=days)
        self.clock.now -= timedelta(days=days)
        self.sleep(*tags[:-2])
        self.clock.now += timedelta(days=days)

    def sleep(self, *names: str) -> None:
        """Let topics fall asleep."""
        ids = {t.id for t in self.topic_table if t.name in names}
        self._set_active({i: s for i, s in self.session.active.items() if i not in ids})

    def wake(self, topic: str) -> None:
        """Let a topic wake, by id; there is room for it from now on."""
        self.awake = {"floor": 4, "usual": 4, "ceiling": 4}
        self._set_active({**self.session.active, topic: (0.9,)})

    def _set_active(self, active: dict[str, tuple[float, ...]]) -> None:
        session = self.session.model_copy(update={"active": active})
        state = {"session": session.model_dump(mode="json", exclude_defaults=True)}
        self._state_graph.update_state(CONFIG, state, as_node="finalize")

    def review(self, **more: Any) -> ReviewReport:
        return review_session(self.graph, CONFIG, archive_index=self.index, **more)

    @cached_property
    def _state_graph(self) -> Graph:
        """Reads and changes the state, all of which is in the checkpointer."""
        return self.graph

    @property
    def session(self) -> Session:
        return get_session(self._state_graph, CONFIG)

    @property
    def store(self) -> SessionStore:
        return kept(self.folder, self.session)

    @property
    def topic_table(self) -> TopicTable:
        return self.store.topic_table(self.session)

    def checked(self) -> list[StoredMessage]:
        return check_kept(self.store, self.session)

    def named(self) -> dict[str, str]:
        """Status by name."""
        return {t.name: t.status for t in self.topic_table}

    def id_of(self, name: str) -> str:
        return next(t.id for t in self.topic_table if t.name == name)

    def files(self) -> set[str]:
        root = self.folder / "s" / "topics"
        return {str(p.relative_to(root)) for p in root.rglob("*.jsonl*")}


_begun: dict[Any, tuple[Prepared, datetime]] = {}
