"""A small application by public names alone: it runs, and holds for strict type checkers."""

from __future__ import annotations

from pathlib import Path

from langchain_core.runnables import RunnableConfig

from topicloom import (
    ActivationPolicy,
    FileStorage,
    Memory,
    Receipt,
    Settings,
    Topic,
    TopicLoomError,
    TurnOptions,
    build_session_graph,
    get_session,
    local_checkpointer,
    open_session,
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
    graph = build_session_graph().compile(checkpointer=local_checkpointer(folder))
    thread: RunnableConfig = {"configurable": {"thread_id": "yue"}}
    try:
        session, store = open_session(graph, thread, FileStorage(folder))
    except TopicLoomError:
        return get_session(graph, thread).topics
    topics: list[Topic] = list(store.topic_table(session))
    return len(topics)


def test_it_runs(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert talk(folder, "My mother has gout.").startswith("Noted.")
    assert "My mother has gout." in look(folder)
    assert count_topics(folder) == 0
    assert policies().floor == 5
