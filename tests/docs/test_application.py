"""A small application by public names alone: it runs, and holds for strict type checkers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from topicloom import (
    BRIEF,
    READER,
    RESPONDER,
    ActivationPolicy,
    Answer,
    Brief,
    BriefRequest,
    Fault,
    FileStorage,
    Forgotten,
    LocalRole,
    Memory,
    Reading,
    ReadRequest,
    Receipt,
    ReplyRequest,
    Roles,
    Settings,
    Topic,
    TopicLoomError,
    TurnOptions,
    build_session_graph,
    check_session,
    default_embedder,
    embedded_roles,
    get_session,
    local_checkpointer,
    open_session,
    reflect_once,
    review_session,
)


def talk(folder: str, said: str) -> str:
    """One turn, and what it rested on."""
    settings = Settings(window=16_000, activation={"floor": 5})
    graph = build_session_graph(settings=settings, storage=FileStorage(folder)).compile(
        checkpointer=local_checkpointer(folder)
    )
    state = graph.invoke(
        {"messages": [("user", said)]},
        {"configurable": {"thread_id": "yue"}},
        context=TurnOptions(keep_messages=4),
    )
    return str(state["messages"][-1].text)


def look(folder: str) -> list[str]:
    """What is remembered."""
    memory = Memory(FileStorage(folder), "yue")
    topics = [topic.name for topic in memory.topics()]
    found = [hit.message.text for hit in memory.search("gout", limit=3)]
    receipts: list[Receipt] = memory.receipts(3)
    return [*topics, *found, *(receipt.user for receipt in receipts)]


def policies() -> ActivationPolicy:
    """Groups of settings are given as they are, or as dicts."""
    settings = Settings(activation=ActivationPolicy(floor=5), split={"trigger": 0.6})
    return settings.activation


def count_topics(folder: str) -> int:
    """By the graph's own state."""
    settings = Settings(folder=Path(folder))
    graph = build_session_graph(settings=settings).compile(checkpointer=local_checkpointer(folder))
    thread: RunnableConfig = {"configurable": {"thread_id": "yue"}}
    try:
        session, store = open_session(graph, thread)
    except TopicLoomError:
        return get_session(graph, thread).topics
    topics: list[Topic] = list(store.topic_table(session))
    return len(topics)


class QuotingReader(LocalRole[ReadRequest, tuple[Reading, ...]]):
    """Finds every topic half relevant, and quotes its first message."""

    model = "first"

    def call(self, request: ReadRequest) -> Answer[tuple[Reading, ...]]:
        """Answer a request."""
        topics = (window.topic.id for window in request.windows)
        return Answer(tuple(Reading(topic=t, score=0.5, quotes=()) for t in topics))


class TwoWords(LocalRole[BriefRequest, Brief]):
    """Names topics by their first two words."""

    model = "words"

    def call(self, request: BriefRequest) -> Answer[Brief]:
        """Answer a request."""
        return Answer(Brief(" ".join(request.messages[0].text.split()[:2]), "no brief"))


class Echo:
    """Repeats what was said."""

    model = "echo"

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        """A reply in pieces."""
        yield AIMessageChunk(content=f"You said: {request.messages[-1].text}")

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        """The same, for an event loop."""
        for chunk in self.stream(request):
            yield chunk


def play_roles() -> Roles:
    """Roles of the application's own."""
    roles = embedded_roles(default_embedder())
    return (
        roles.replace(READER, QuotingReader()).replace(BRIEF, TwoWords()).replace(RESPONDER, Echo())
    )


def look_after(folder: str) -> list[str]:
    """A session that is talked to, named, searched, reviewed, checked and forgotten."""
    storage, checkpointer = FileStorage(folder), InMemorySaver()
    settings = Settings(window=1_000, fsync=False)
    graph = build_session_graph(settings=settings, storage=storage, roles=play_roles()).compile(
        checkpointer=checkpointer
    )
    thread: RunnableConfig = {"configurable": {"thread_id": "ann"}}
    for n in range(4):
        graph.invoke({"messages": f"Tea number {n}: {'it is green, and ' * 30}"}, thread)
    memory = Memory.of(graph, thread)
    names = [memory.rename(memory.topics()[0].id, "Tea").name, memory.undo().event]
    reviewed = review_session(graph, thread, dry_run=True)
    faults: list[Fault] = check_session(graph, thread)
    found = reflect_once(
        "ann", checkpointer=checkpointer, storage=storage, store=InMemoryStore(), roles=play_roles()
    )
    gone: Forgotten = memory.forget("m1", dry_run=True)
    names += [fault.what for fault in faults] + [m.text for m in gone.messages]
    names += [fact.text for reflection in found.reflections for fact in reflection.facts]
    memory.delete()
    return [*names, *reviewed.reviewed, *storage.sessions()]


@pytest.mark.slow
def test_the_application_of_the_docs_runs(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert talk(folder, "My mother has gout.").startswith("Kept.")
    assert "My mother has gout." in look(folder)
    assert count_topics(folder) == 0
    assert policies().floor == 5


@pytest.mark.slow
def test_roles_of_its_own_and_what_looks_after_a_session(tmp_path: Path) -> None:
    name, undone, *rest = look_after(str(tmp_path))
    assert name == "Tea"
    assert "Tea" in undone
    assert rest[0].startswith("Tea number 0")
