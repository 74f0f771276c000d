"""One user in several threads, whose facts a reflector finds that is always right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from sessions import open_graph

from topicloom import (
    REFLECTOR,
    Answer,
    Claim,
    Fact,
    FileStorage,
    LocalRole,
    Memory,
    ReflectionPolicy,
    ReflectionStore,
    ReflectRequest,
    Roles,
    Storage,
    TurnOptions,
)
from topicloom.hosting import Graph, get_text, name_thread
from topicloom.reflection.reflect import ReflectionRunner
from topicloom.reflection.sessions import StoredSessionSource
from topicloom.testing import Clock, ScriptedResponder, fake_roles


@dataclass
class RightReflector(LocalRole[ReflectRequest, tuple[Claim, ...]]):
    """Finds a fact in each message that it was told of, and what it takes the place of."""

    subjects: Mapping[str, str] = field(default_factory=dict)
    """What a message is about, by its text: of two about one thing, the later one holds."""

    def call(self, request: ReflectRequest) -> Answer[tuple[Claim, ...]]:
        known: dict[str, set[str]] = {}
        for fact in request.facts:
            known.setdefault(self.subjects.get(fact.text, ""), set()).add(fact.key)
        claims = []
        for message in request.messages:
            if message.role == "user" and (about := self.subjects.get(message.text)):
                olds = tuple(sorted(known.get(about, ())))
                claims.append(Claim(message.text, (message.id,), olds))
                known.setdefault(about, set()).add(Fact(message.text, (), "").key)
        return Answer(tuple(claims))


@dataclass
class People:
    """A graph over a folder, a store of facts, and everything to talk and to reflect with."""

    folder: Path
    subjects: dict[str, str] = field(default_factory=dict)
    store: BaseStore = field(default_factory=InMemoryStore)
    checkpointer: BaseCheckpointSaver[Any] = field(default_factory=InMemorySaver)
    responder: ScriptedResponder = field(default_factory=ScriptedResponder)
    storage: Storage | None = None
    roles: Roles | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.storage = self.storage or FileStorage(self.folder, fsync=False)
        given = {"window": 8_000, **self.settings}
        self.graph: Graph = open_graph(
            self.folder,
            self.roles or fake_roles(self.responder),
            store=self.store,
            storage=self.storage,
            checkpointer=self.checkpointer,
            clock=self.clock,
            **given,
        )
        self.kept = ReflectionStore(self.store)

    def say(
        self, thread: str, text: str, user: str = "ann", scope: str = "", **options: Any
    ) -> str:
        """Say something in a thread; returns the prompt that it was answered by."""
        config = options.pop("config", None) or name_thread(thread, user, scope)
        said: Any = {"messages": [HumanMessage(text)]}
        self.graph.invoke(said, config, context=TurnOptions(**options))
        if self.roles is not None:
            own = name_thread(config["configurable"]["thread_id"])
            return "\n".join(get_text(m) for m in Memory.of(self.graph, own).prompt()[:-1])
        messages = self.responder.requests[-1].messages
        return "\n".join(get_text(m) for m in messages)

    def learn(self, thread: str, text: str, about: str = "", **options: Any) -> None:
        """Say something of oneself, and have it become a fact; a day goes by."""
        self.subjects[text] = about or text
        self.say(thread, text, **options)
        self.reflect(thread)
        self.pass_days(1)

    def reflect(self, thread: str) -> None:
        """Reflect upon a thread."""
        self.reflecting().run(thread)

    def reflecting(self) -> ReflectionRunner:
        """What reflects, as a process of its own has it."""
        sessions = StoredSessionSource(
            checkpointer=self.checkpointer,
            storage=self.storage or FileStorage(self.folder, fsync=False),
            store=self.kept,
            policy=ReflectionPolicy(),
            clock=lambda: self.clock().timestamp(),
        )
        right = RightReflector(self.subjects)
        return ReflectionRunner(sessions, fake_roles().replace(REFLECTOR, right, stand_in=right))

    def pass_days(self, days: float) -> datetime:
        """Let days go by; returns what time it is then."""
        self.clock.now += timedelta(days=days)
        return self.clock.now

    def memory(self, thread: str, user: str = "", scope: str = "") -> Memory:
        """The memory of a thread."""
        return Memory.of(self.graph, name_thread(thread, user, scope))

    def facts(self, thread: str, at: str | None = None) -> set[str]:
        """The facts that hold and that a thread sees."""
        return {fact.text for fact in self.memory(thread).facts(at).values()}
